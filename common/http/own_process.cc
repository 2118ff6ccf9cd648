#include "common/http/own_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace kumo {
namespace {

std::string Contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/self/stat from the third on, which is [0]: the name before it may hold
// anything.
std::vector<std::string> StatFields() {
  const std::string text = Contents("/proc/self/stat");
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(text.substr(end + 1));
  return {std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>()};
}

// When the machine started, in seconds since 1970.
std::optional<double> BootTime() {
  std::istringstream lines(Contents("/proc/stat"));
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return std::nullopt;
}

}  // namespace

OwnProcess LookAtOwnProcess() {
  OwnProcess process;
  constexpr size_t kUser = 11, kSystem = 12, kStart = 19, kVirtual = 20, kResident = 21;
  const std::vector<std::string> stat = StatFields();
  if (stat.size() > kResident) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    process.cpu_s = (std::stod(stat[kUser]) + std::stod(stat[kSystem])) / ticks;
    process.virtual_bytes = std::stoll(stat[kVirtual]);
    process.resident_bytes = std::stoll(stat[kResident]) * sysconf(_SC_PAGESIZE);
    if (const auto boot = BootTime()) process.started_s = *boot + std::stod(stat[kStart]) / ticks;
  }
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (!error) {
    // One of them is the folder's.
    process.open_fds = std::distance(begin(fds), end(fds)) - 1;
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    process.max_fds = static_cast<int64_t>(limit.rlim_cur);
  }
  return process;
}

}  // namespace kumo
