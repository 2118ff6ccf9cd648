#include "common/base/clock.h"

#include <time.h>

#include <chrono>

namespace kumo {

TimeUs SteadyClock::NowUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TimeUs BootClock::NowUs() const {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * kSecond + time.tv_nsec / 1000;
}

TimeUs RunningClock::NowUs() const {
  MutexLock lock(mutex_);
  // Read under the lock, so that readings are in order.
  const TimeUs now = machine_->NowUs();
  if (now - last_ > kLongestGap) stopped_ += now - last_;
  last_ = now;
  return now - stopped_;
}

TimeUs RunningClock::StoppedUs() const {
  MutexLock lock(mutex_);
  return stopped_;
}

std::optional<std::string> StopNotice::Next() {
  const TimeUs stopped = clock_->StoppedUs() - told_;
  if (stopped == 0) return std::nullopt;
  told_ += stopped;
  return "this process did not run for " + InWholeSeconds(stopped) +
         " (stopped, or the machine slept or was paused): the time counts for no timeout";
}

double TimeOfDay() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace kumo
