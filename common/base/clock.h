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
  // Time that NowUs has left out so far.
  virtual TimeUs SkippedUs() const { return 0; }
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

// Running clock: the machine's time without the gaps in which this process did not ask for it, for
// its timeouts. In a gap the process was stopped or too busy, or the machine was suspended:
// messages of others were there, but nobody read them, so no silence can be inferred.
//
// Requires that a process that reads messages asks for the time at least every kLongestGap, as the
// loops of services do: a longer gap is left out. A thread beside the loop that asks as often has a
// clock of its own, or it would hide the loop's gaps. Thread-safe; never goes back.
class RunningClock : public Clock {
 public:
  static constexpr TimeUs kLongestGap = 2 * kSecond;

  RunningClock() : machine_(&boot_clock_), last_(machine_->NowUs()) {}
  // machine: borrowed for life.
  explicit RunningClock(const Clock* machine) : machine_(machine), last_(machine_->NowUs()) {}

  TimeUs NowUs() const override KUMO_EXCLUDES(mutex_);
  TimeUs SkippedUs() const override KUMO_EXCLUDES(mutex_);

 private:
  const BootClock boot_clock_;
  const Clock* const machine_;
  mutable Mutex mutex_;
  mutable TimeUs last_ KUMO_GUARDED_BY(mutex_);  // of the machine's clock
  mutable TimeUs skipped_ KUMO_GUARDED_BY(mutex_) = 0;
};

// Gap notice: tells a loop of the gaps that its clock has left out. One thread.
class GapNotice {
 public:
  // From now on.
  explicit GapNotice(const Clock* clock) : clock_(clock), told_(clock->SkippedUs()) {}
  // A line for the log, once after each gap.
  std::optional<std::string> Next();

 private:
  const Clock* const clock_;  // borrowed for life
  TimeUs told_;
};

// The wall clock in seconds since 1970; it may be set and jump.
double TimeOfDay();

}  // namespace kumo
