#include "common/job/process_identity.h"

#include <ctime>
#include <fstream>
#include <random>

#include <unistd.h>

namespace kumo {

ProcessIdentity ThisProcess(const std::string& host) {
  ProcessIdentity process;
  process.host = host;
  process.pid = getpid();
  std::random_device random;
  process.incarnation = (uint64_t{random()} << 32) | random();
  std::ifstream("/proc/sys/kernel/random/boot_id") >> process.boot;
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  process.started_ms = int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  return process;
}

}  // namespace kumo
