#include "common/base/memory_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/control_group.h"
#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/base/text_table.h"

namespace kumo {

namespace {

// Names of the files of the two control group versions.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* droppable;  // reclaimable page cache, in memory.stat
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};

// The remainder of a group's limit; none without a limit.
std::optional<MemoryRoom> LeftInGroup(const ControlGroup& group) {
  const GroupFiles& files = group.version == 2 ? kVersion2 : kVersion1;
  const auto limit = NumberInKernelFile(JoinPath(group.folder, files.limit));
  const auto used = NumberInKernelFile(JoinPath(group.folder, files.used));
  if (!limit || !used) return std::nullopt;
  const uint64_t droppable =
      NumberInKernelFile(JoinPath(group.folder, "memory.stat"), files.droppable).value_or(0);
  const uint64_t kept = *used - std::min(droppable, *used);
  return MemoryRoom{*limit - std::min(kept, *limit), "the limit of control group " + group.name};
}

void TakeLess(const std::optional<MemoryRoom>& other, MemoryRoom* room) {
  if (other && other->bytes < room->bytes) *room = *other;
}

}  // namespace

Result<MemoryRoom> RoomOnMachine(const std::string& root) {
  const auto kib = NumberInKernelFile(root + "/proc/meminfo", "MemAvailable:");
  if (!kib) return NotFound("/proc/meminfo does not say how much memory is available");
  MemoryRoom room = {*kib * 1024, "the machine's memory"};
  for (const ControlGroup& group : ControlGroupsOf("memory", root)) {
    TakeLess(LeftInGroup(group), &room);
  }
  return room;
}

Result<MemoryRoom> RoomInProcess(const std::string& root, uint64_t address_space) {
  KUMO_ASSIGN_OR_RETURN(MemoryRoom room, RoomOnMachine(root));
  if (address_space == UINT64_MAX) return room;
  const uint64_t used =
      NumberInKernelFile(root + "/proc/self/status", "VmSize:").value_or(0) * 1024;
  TakeLess(MemoryRoom{address_space - std::min(used, address_space),
                      "this process's address space limit (ulimit -v)"},
           &room);
  return room;
}

Result<MemoryRoom> RoomInProcess() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return RoomInProcess("", limited ? uint64_t{limit.rlim_cur} : UINT64_MAX);
}

namespace {

// Only parts above this share are named in an error.
constexpr size_t kMostNamed = 3;
constexpr int64_t kWorthNaming = 10;  // a tenth of the whole

int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::vector<MemoryNeed::Part> LargestFirst(std::vector<MemoryNeed::Part> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return parts;
}

}  // namespace

int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

void MemoryNeed::Add(std::string what, std::initializer_list<int64_t> factors,
                     std::string settings) {
  const int64_t bytes = SaturatingProduct(factors);
  if (bytes > 0) parts_.push_back({std::move(what), bytes, std::move(settings)});
}

int64_t MemoryNeed::bytes() const {
  int64_t sum = 0;
  for (const Part& part : parts_) sum = SaturatingSum(sum, part.bytes);
  return sum;
}

std::string MemoryNeed::Head() const {
  return whose_ + " needs " + HumanBytes(bytes()) + " (" + std::to_string(bytes()) + " bytes):";
}

std::string MemoryNeed::Table(int columns) const {
  const std::vector<TextColumn> header = {{"", false}, {""}, {"", false}};
  std::vector<std::vector<std::string>> rows;
  for (const Part& part : LargestFirst(parts_)) {
    rows.push_back({part.what, HumanBytes(part.bytes), part.settings});
  }
  return FormatTextTable(header, rows, columns);
}

std::string MemoryNeed::Largest() const {
  std::string text;
  size_t named = 0;
  for (const Part& part : LargestFirst(parts_)) {
    if (named++ == kMostNamed || part.bytes < bytes() / kWorthNaming) break;
    text += (text.empty() ? "" : ", ") + HumanBytes(part.bytes) + " for " + part.what;
    if (!part.settings.empty()) text += " (" + part.settings + ")";
  }
  return text;
}

Status MemoryNeed::CheckFits(const MemoryRoom& room) const {
  if (static_cast<uint64_t>(bytes()) <= room.bytes) return OkStatus();
  return FailedPrecondition(
      "memory: " + whose_ + " needs " + HumanBytes(bytes()) + ", " + room.limit + " has room for " +
      HumanBytes(room.bytes) + "; most of it: " + Largest() +
      ": lower the named settings, start fewer processes, or use a machine with more memory");
}

}  // namespace kumo
