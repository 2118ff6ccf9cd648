#include "cli/machine_memory.h"

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

// Version 2 of control groups: "0::/user.slice" in /proc/self/cgroup.
std::string ControlGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return root + "/sys/fs/cgroup" + line.substr(3);
  }
  return root + "/sys/fs/cgroup";
}

// Nothing where the group has no limit.
std::optional<uint64_t> LeftInGroup(const std::string& group) {
  const auto limit = NumberIn(group + "/memory.max", "");
  const auto used = NumberIn(group + "/memory.current", "");
  if (!limit || !used) return std::nullopt;
  const uint64_t droppable = NumberIn(group + "/memory.stat", "inactive_file").value_or(0);
  const uint64_t kept = *used - std::min(droppable, *used);
  return *limit - std::min(kept, *limit);
}

}  // namespace

Result<uint64_t> AvailableMemory(const std::string& root) {
  const auto kib = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  if (!kib) return NotFound("/proc/meminfo does not say how much memory is available");
  std::optional<uint64_t> left = LeftInGroup(ControlGroup(root));
  // In a container the group's own name may not be there: it is what is mounted.
  if (!left) left = LeftInGroup(root + "/sys/fs/cgroup");
  return std::min(*kib * 1024, left.value_or(UINT64_MAX));
}

}  // namespace kumo
