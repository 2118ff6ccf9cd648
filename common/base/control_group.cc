#include "common/base/control_group.h"

#include <fstream>
#include <utility>

namespace kumo {
namespace {

void AddWithAncestors(int version, const std::string& mount, std::string name,
                      std::vector<ControlGroup>* groups) {
  while (!name.empty()) {
    groups->push_back({version, mount + name, name});
    name.resize(name.rfind('/'));
  }
  groups->push_back({version, mount, "/"});
}

}  // namespace

// Parses /proc/self/cgroup: "0::/user.slice" for version 2, "4:cpu,memory:/user.slice" for
// version 1.
std::vector<ControlGroup> ControlGroupsOf(std::string_view controller, const std::string& root) {
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
    if (controllers.find("," + std::string(controller) + ",") != std::string::npos) name1 = name;
  }
  std::vector<ControlGroup> groups;
  const std::string mount = root + "/sys/fs/cgroup";
  AddWithAncestors(2, mount, std::move(name2), &groups);
  AddWithAncestors(1, mount + "/" + std::string(controller), std::move(name1), &groups);
  return groups;
}

std::optional<uint64_t> NumberInKernelFile(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  if (name.empty()) {
    uint64_t number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
  }
  while (file >> word) {
    uint64_t number = 0;
    if (word == name && file >> number) return number;
    // A failed number would end the search.
    file.clear(file.rdstate() & ~std::ios::failbit);
  }
  return std::nullopt;
}

}  // namespace kumo
