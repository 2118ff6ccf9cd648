#include "common/base/process/process_limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include <linux/capability.h>

#include "common/base/control_group.h"
#include "common/base/file.h"

namespace kumo {
namespace {

// More descriptors are of no use, and programs that close each possible one would take minutes.
constexpr rlim_t kMostDescriptors = 1 << 20;

void Raise(int resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, most);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  // Without success the check reports the limit that holds.
  (void)setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// True if the kernel exempts this process from RLIMIT_NPROC.
bool IsExempt(const std::string& root) {
  if (getuid() == 0) return true;
  std::ifstream file(root + "/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != "CapEff:") continue;
    uint64_t set = 0;
    file >> std::hex >> set;
    return (set & (uint64_t{1} << CAP_SYS_RESOURCE | uint64_t{1} << CAP_SYS_ADMIN)) != 0;
  }
  return false;
}

// Threads of all processes of this user.
int64_t ThreadsOfUser(const std::string& root) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir((root + "/proc").c_str()), &closedir);
  if (!folder) return 0;
  int64_t threads = 0;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const std::string status = root + "/proc/" + entry->d_name + "/status";
    if (NumberInKernelFile(status, "Uid:") != uint64_t{getuid()}) continue;
    threads += static_cast<int64_t>(NumberInKernelFile(status, "Threads:").value_or(0));
  }
  return threads;
}

void TakeLess(uint64_t limit, uint64_t used, const std::string& whose, ThreadRoom* room) {
  const auto left = static_cast<int64_t>(limit - std::min(used, limit));
  if (left >= room->threads) return;
  room->threads = left;
  room->limit = whose + " allows " + std::to_string(limit) + " processes and threads, and " +
                std::to_string(used) + " are in use";
}

// Open descriptors of this process that `counts` counts, except the ones that counting opens.
template <typename Predicate>
int64_t OpenDescriptors(const Predicate& counts) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), &closedir);
  if (!folder) return errno == EMFILE ? INT64_MAX : 0;
  int64_t open = 0;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor != dirfd(folder.get()) && counts(descriptor)) ++open;
  }
  return open;
}

DescriptorRoom RoomBeside(int64_t open) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return {INT64_MAX, INT64_MAX};
  }
  const auto most = static_cast<int64_t>(limit.rlim_cur);
  return {most - std::min(most, open), most};
}

}  // namespace

void RaiseSoftLimits() {
  Raise(RLIMIT_NOFILE, kMostDescriptors);
  Raise(RLIMIT_NPROC, RLIM_INFINITY);
}

DescriptorRoom RoomForDescriptors() {
  return RoomBeside(OpenDescriptors([](int) { return true; }));
}

DescriptorRoom RoomForDescriptorsOfChild() {
  constexpr int kStandardStreams = 3;
  const int64_t passed_on = OpenDescriptors([](int descriptor) {
    if (descriptor < kStandardStreams) return false;
    const int flags = fcntl(descriptor, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
  });
  return RoomBeside(passed_on == INT64_MAX ? passed_on : kStandardStreams + passed_on);
}

ThreadRoom RoomForThreads(const std::string& root) {
  ThreadRoom room;
  for (const ControlGroup& group : ControlGroupsOf("pids", root)) {
    const auto limit = NumberInKernelFile(JoinPath(group.folder, "pids.max"));
    const auto used = NumberInKernelFile(JoinPath(group.folder, "pids.current"));
    if (limit && used) {
      TakeLess(*limit, *used, "control group " + group.name + " (pids.max)", &room);
    }
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && !IsExempt(root)) {
    TakeLess(limit.rlim_cur, ThreadsOfUser(root), "this user's limit (ulimit -u)", &room);
  }
  return room;
}

Status CheckDescriptors(const ProcessNeed& need, const DescriptorRoom& room) {
  if (need.descriptors <= room.free) return OkStatus();
  constexpr uint64_t kUsual = 4096;
  const auto in_all = static_cast<uint64_t>(need.descriptors + room.limit - room.free);
  return FailedPrecondition(
      "descriptors: " + need.whose + " needs up to " + std::to_string(need.descriptors) +
      " files and connections (" + need.settings + "), but can open " + std::to_string(room.free) +
      ": the limit of a process is " + std::to_string(room.limit) + "; raise it (ulimit -n " +
      std::to_string(std::max(kUsual, std::bit_ceil(in_all))) +
      "; LimitNOFILE of systemd; --ulimit nofile of a container)");
}

Status CheckThreads(const std::string& whose, int64_t need, const ThreadRoom& room,
                    const std::string& settings) {
  if (need <= room.threads) return OkStatus();
  return FailedPrecondition("threads: " + whose + " needs up to " + std::to_string(need) +
                            " processes and threads (" + settings + "), but " + room.limit +
                            "; raise that limit, lower the named settings, or start fewer "
                            "processes");
}

Status CheckLimits(const ProcessNeed& need) {
  KUMO_RETURN_IF_ERROR(CheckDescriptors(need, RoomForDescriptors()));
  // The main thread is counted as used.
  return CheckThreads(need.whose, need.threads - 1, RoomForThreads(), need.settings);
}

}  // namespace kumo
