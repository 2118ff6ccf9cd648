#include "common/clock.h"

#include <chrono>
#include <ctime>
#include <fstream>

namespace kumo {

TimeUs SteadyClock::NowUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double TimeOfDay() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

BootTime BootTime::Now() {
  BootTime now;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> now.boot;
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  now.ms = int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  return now;
}

}  // namespace kumo
