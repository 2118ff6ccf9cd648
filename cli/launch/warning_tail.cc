#include "cli/launch/warning_tail.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace kumo {
namespace {

constexpr size_t kMost = 20;
constexpr size_t kLongestLine = 4096;

}  // namespace

WarningTail::WarningTail(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path_, error);
  if (!error) offset_ = static_cast<long long>(bytes);
}

std::vector<std::string> WarningTail::Next() {
  std::vector<std::string> warnings;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  char bytes[4096];
  while (file.read(bytes, sizeof(bytes)) || file.gcount() > 0) {
    offset_ += file.gcount();
    for (const char c : std::string_view(bytes, static_cast<size_t>(file.gcount()))) {
      if (c != '\n') {
        if (line_.size() < kLongestLine) line_ += c;
        continue;
      }
      const std::string warning = WarningIn(std::exchange(line_, ""));
      if (!warning.empty()) warnings.push_back(warning);
    }
  }
  if (warnings.size() > kMost) warnings.erase(warnings.begin(), warnings.end() - kMost);
  return warnings;
}

// "W20261122 05:40:29.155170 26773 server_service.cc:107] worker-1 is lost".
std::string WarningIn(const std::string& line) {
  const bool severe = line.size() > 1 && (line[0] == 'W' || line[0] == 'E') &&
                      std::isdigit(static_cast<unsigned char>(line[1])) != 0;
  const size_t end = line.find("] ");
  if (!severe || end == std::string::npos) return "";
  return line.substr(end + 2);
}

}  // namespace kumo
