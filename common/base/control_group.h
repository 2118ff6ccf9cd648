// Control groups of this process (Linux, versions 1 and 2): the folders with the limits of its own
// group and of each group above, which all hold.
//
// Pure functions of the kernel's files; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumo {

struct ControlGroup {
  int version = 2;
  std::string folder;  // of its files
  std::string name;    // for people: "/pod/main"
};

// The groups of a controller ("memory", "pids", "cpu") with their ancestors, for both versions.
// Folders need not exist. In a container the group's name may not exist: the mount is then the
// group itself, which the last entry of each version covers. root: replaces "/" in tests.
std::vector<ControlGroup> ControlGroupsOf(std::string_view controller, const std::string& root);

// The number after `name` in a file of lines "NAME NUMBER ..."; with an empty name, the number at
// the start of the file. None if it is missing or no number, such as "max". Does not use
// FileSystem, because such files report no length.
std::optional<uint64_t> NumberInKernelFile(const std::string& path, std::string_view name = "");

}  // namespace kumo
