// Benchmark reports: the machine, and medians with their spread.
#pragma once

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kumo {

struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};

// Zeros for no values.
inline Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values.front(), (values[(n - 1) / 2] + values[n / 2]) / 2, values.back()};
}

// Processor, cores and kernel.
inline std::string Machine() {
  std::string processor = "unknown";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    processor = line.substr(line.find(':') + 2);
    break;
  }
  utsname system = {};
  uname(&system);
  return processor + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
         system.sysname + " " + system.release;
}

}  // namespace kumo
