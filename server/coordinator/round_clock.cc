#include "server/coordinator/round_clock.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace kumo {
namespace {

// Rounds whose durations the clock keeps.
constexpr size_t kRoundTimes = 9;

}  // namespace

void RoundClock::OnClosed(TimeUs now) {
  round_times_.push_back(Standstill(now));
  if (round_times_.size() > kRoundTimes) round_times_.pop_front();
  Moved(now);
}

TimeUs RoundClock::TypicalRound() const {
  if (round_times_.size() < kRoundTimes) return 0;
  std::vector<TimeUs> times(round_times_.begin(), round_times_.end());
  const auto quarter = times.begin() + std::ssize(times) / 4;
  std::nth_element(times.begin(), quarter, times.end());
  return *quarter;
}

}  // namespace kumo
