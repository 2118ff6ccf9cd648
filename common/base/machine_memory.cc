#include "common/base/machine_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

namespace kumo {
namespace {

// The number behind `name` in a file of lines "NAME NUMBER ..."; with an empty name the number that
// the file begins with. Not through FileSystem: such files say nothing about their length.
std::optional<uint64_t> NumberIn(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  if (name.empty()) {
    uint64_t number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
  }
  while (file >> word) {
    uint64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return std::nullopt;
}

// The two versions of control groups: where they are, and what their files are called.
struct GroupVersion {
  const char* folder;
  const char* limit;
  const char* used;
  const char* droppable;  // page cache, in memory.stat
};
constexpr GroupVersion kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                    "inactive_file"};
constexpr GroupVersion kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes", "total_inactive_file"};

// What a group may still take; nothing where it has no limit.
std::optional<MemoryRoom> LeftInGroup(const std::string& root, const GroupVersion& version,
                                      const std::string& name) {
  const std::string folder = root + version.folder + name;
  const auto limit = NumberIn(folder + "/" + version.limit, "");
  const auto used = NumberIn(folder + "/" + version.used, "");
  if (!limit || !used) return std::nullopt;
  const uint64_t droppable = NumberIn(folder + "/memory.stat", version.droppable).value_or(0);
  const uint64_t kept = *used - std::min(droppable, *used);
  return MemoryRoom{*limit - std::min(kept, *limit),
                    std::string("the limit of control group ") + (name.empty() ? "/" : name)};
}

void TakeLess(const std::optional<MemoryRoom>& other, MemoryRoom* room) {
  if (other && other->bytes < room->bytes) *room = *other;
}

// The group of that name and those above it. In a container the name may not be there: what is
// mounted then is the group itself, which the last step looks at.
void LimitByGroups(const std::string& root, const GroupVersion& version, std::string name,
                   MemoryRoom* room) {
  while (!name.empty()) {
    TakeLess(LeftInGroup(root, version, name), room);
    name.resize(name.rfind('/'));
  }
  TakeLess(LeftInGroup(root, version, ""), room);
}

// Lines of /proc/self/cgroup: "0::/user.slice" of version 2, "4:cpu,memory:/user.slice" of
// version 1.
void LimitByControlGroups(const std::string& root, MemoryRoom* room) {
  std::string name2, name1;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string name = line.substr(second + 1);
    if (name == "/" || !name.starts_with('/')) name.clear();
    if (controllers == ",,") name2 = name;
    if (controllers.find(",memory,") != std::string::npos) name1 = name;
  }
  LimitByGroups(root, kVersion2, name2, room);
  LimitByGroups(root, kVersion1, name1, room);
}

}  // namespace

Result<MemoryRoom> RoomOnMachine(const std::string& root) {
  const auto kib = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  if (!kib) return NotFound("/proc/meminfo does not say how much memory is available");
  MemoryRoom room = {*kib * 1024, "the machine's memory"};
  LimitByControlGroups(root, &room);
  return room;
}

Result<MemoryRoom> RoomInProcess(const std::string& root, uint64_t address_space) {
  KUMO_ASSIGN_OR_RETURN(MemoryRoom room, RoomOnMachine(root));
  if (address_space == UINT64_MAX) return room;
  const uint64_t used = NumberIn(root + "/proc/self/status", "VmSize:").value_or(0) * 1024;
  TakeLess(MemoryRoom{address_space - std::min(used, address_space),
                      "this process's limit of address space (ulimit -v)"},
           &room);
  return room;
}

Result<MemoryRoom> RoomInProcess() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return RoomInProcess("", limited ? uint64_t{limit.rlim_cur} : UINT64_MAX);
}

}  // namespace kumo
