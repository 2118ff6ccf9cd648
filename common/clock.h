// Time, handed in: the protocol core never asks the machine for it.
#pragma once

#include <cstdint>

namespace kumo {

// Microseconds since an arbitrary start; never goes back.
using TimeUs = int64_t;
constexpr TimeUs kMillisecond = 1000;
constexpr TimeUs kSecond = 1'000'000;

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

}  // namespace kumo
