// Clock: the time, passed in as an interface; the protocol core never reads the machine's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/mutex.h"

namespace kumo {

// Microseconds since an arbitrary start; monotonic.
using TimeUs = int64_t;
constexpr TimeUs kMillisecond = 1000;
constexpr TimeUs kSecond = 1'000'000;

constexpr TimeUs FromSeconds(double seconds) { return static_cast<TimeUs>(seconds * 1e6); }
constexpr double ToSeconds(TimeUs time) { return static_cast<double>(time) * 1e-6; }
// "12 s"
inline std::string InWholeSeconds(TimeUs time) { return std::to_string(time / kSecond) + " s"; }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeUs NowUs() const = 0;
  // Time that NowUs has left out so far, because the process did not run.
  virtual TimeUs StoppedUs() const { return 0; }
};

// The machine's monotonic clock. Thread-safe.
class SteadyClock : public Clock {
 public:
  TimeUs NowUs() const override;
};

// The machine's monotonic clock with the time that the machine was suspended. Thread-safe.
class BootClock : public Clock {
 public:
  TimeUs NowUs() const override;
};

// Running clock: the time that this process has run, for its timeouts. Time in which it did not run
// (stopped, a suspended machine, a paused virtual machine) is left out: messages of others were
// there, but nobody read them, so no silence can be inferred.
//
// Requires that a process that runs asks for the time at least every kLongestGap, as the loops of
// services do: a longer gap counts as time in which it did not run. Thread-safe; never goes back.
class RunningClock : public Clock {
 public:
  static constexpr TimeUs kLongestGap = 2 * kSecond;

  RunningClock() : machine_(&boot_clock_), last_(machine_->NowUs()) {}
  // machine: borrowed for life.
  explicit RunningClock(const Clock* machine) : machine_(machine), last_(machine_->NowUs()) {}

  TimeUs NowUs() const override KUMO_EXCLUDES(mutex_);
  TimeUs StoppedUs() const override KUMO_EXCLUDES(mutex_);

 private:
  const BootClock boot_clock_;
  const Clock* const machine_;
  mutable Mutex mutex_;
  mutable TimeUs last_ KUMO_GUARDED_BY(mutex_);  // of the machine's clock
  mutable TimeUs stopped_ KUMO_GUARDED_BY(mutex_) = 0;
};

// Stop notice: tells a loop when its process did not run for a while. One thread.
class StopNotice {
 public:
  // From now on.
  explicit StopNotice(const Clock* clock) : clock_(clock), told_(clock->StoppedUs()) {}
  // A line for the log, once after each stop.
  std::optional<std::string> Next();

 private:
  const Clock* const clock_;  // borrowed for life
  TimeUs told_;
};

// The wall clock in seconds since 1970; it may be set and jump.
double TimeOfDay();

}  // namespace kumo
