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
  if (now - last_ > kLongestGap) skipped_ += now - last_;
  last_ = now;
  return now - skipped_;
}

TimeUs RunningClock::SkippedUs() const {
  MutexLock lock(mutex_);
  return skipped_;
}

std::optional<std::string> GapNotice::Next() {
  const TimeUs gap = clock_->SkippedUs() - told_;
  if (gap == 0) return std::nullopt;
  told_ += gap;
  return "this process read no messages for " + InWholeSeconds(gap) +
         " (it was stopped or busy, or the machine slept or was paused): the time counts for no "
         "timeout";
}

double TimeOfDay() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace kumo
