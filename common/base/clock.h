// Clock: the time, passed in as an interface; the protocol core never reads the machine's clock.
#pragma once

#include <cstdint>
#include <string>

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
};

// The machine's monotonic clock. Thread-safe.
class SteadyClock : public Clock {
 public:
  TimeUs NowUs() const override;
};

// The wall clock in seconds since 1970; it may be set and jump.
double TimeOfDay();

}  // namespace kumo
