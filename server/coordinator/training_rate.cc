#include "server/coordinator/training_rate.h"

#include <algorithm>
#include <cmath>

namespace kumo {
namespace {

constexpr double kMemorySeconds = 60;

}  // namespace

bool TrainingRate::AreAlike(const RoundPlan& a, const RoundPlan& b) {
  return a.mode == b.mode && a.full_precision == b.full_precision;
}

void TrainingRate::OnClosed(const RoundPlan& round, TimeUs now) {
  if (last_) {
    const double took = ToSeconds(now - last_at_);
    const double kept = AreAlike(*last_, round) ? std::exp(-took / kMemorySeconds) : 0;
    samples_ = kept * samples_ + static_cast<double>(round.samples.size());
    seconds_ = kept * seconds_ + took;
  }
  last_ = round;
  last_at_ = now;
}

std::optional<double> TrainingRate::SamplesPerSecond(TimeUs now) const {
  if (samples_ <= 0 || seconds_ <= 0) return std::nullopt;
  const double expected = static_cast<double>(last_->samples.size()) * seconds_ / samples_;
  const double late = std::max(0.0, ToSeconds(now - last_at_) - expected);
  return samples_ / (seconds_ + late);
}

std::optional<double> TrainingRate::SamplesPerSecondOf(const RoundPlan& round, TimeUs now) const {
  if (!last_ || !AreAlike(*last_, round)) return std::nullopt;
  return SamplesPerSecond(now);
}

}  // namespace kumo
