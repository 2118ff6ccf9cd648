#include "common/settings/installed_experiments.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".conf";

fs::path ExperimentsOf(const std::string& share) { return fs::path(share) / "experiments"; }

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

}  // namespace

std::string FindExperiment(const std::string& name, const std::string& share) {
  if (name.empty() || name.find('/') != std::string::npos || IsFile(name)) return name;
  if (IsFile(name + kEnding)) return name + kEnding;
  for (const char* ending : {"", kEnding}) {
    const fs::path installed = ExperimentsOf(share) / (name + ending);
    if (IsFile(installed)) return installed.string();
  }
  return name;
}

std::vector<std::string> InstalledExperiments(const std::string& share) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(ExperimentsOf(share), error)) {
    if (entry.path().extension() == kEnding) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kumo
