#include "worker/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace kumo {

int64_t DrawToken(std::span<const float> scores, const SamplingSettings& settings, Rng* rng) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  if (settings.temperature <= 0) return order[0];
  if (settings.most_likely > 0 && settings.most_likely < std::ssize(order)) {
    order.resize(settings.most_likely);
  }
  const auto top = static_cast<double>(scores[order[0]]);
  std::vector<double> below;  // cumulative sums before normalisation
  double sum = 0;
  for (const int64_t token : order) {
    sum += std::exp((static_cast<double>(scores[token]) - top) / settings.temperature);
    below.push_back(sum);
  }
  if (settings.top_p < 1) {
    const auto last = std::ranges::lower_bound(below, settings.top_p * sum);
    if (last != below.end()) below.erase(last + 1, below.end());
    sum = below.back();
  }
  const double drawn = static_cast<double>(rng->NextUint64() >> 11) * 0x1p-53 * sum;
  const auto found = std::ranges::upper_bound(below, drawn);
  return order[std::min(found - below.begin(), std::ssize(below) - 1)];
}

bool StopFilter::Add(std::string_view part) {
  if (stop_.empty()) {
    say_(part);
    return true;
  }
  held_ += part;
  const size_t stop = held_.find(stop_);
  if (stop != std::string::npos) {
    say_(std::string_view(held_).substr(0, stop));
    held_.clear();
    return false;
  }
  // The longest end that is a start of the stop string.
  size_t kept = std::min(held_.size(), stop_.size() - 1);
  while (!std::string_view(held_).ends_with(std::string_view(stop_).substr(0, kept))) --kept;
  if (kept < held_.size()) say_(std::string_view(held_).substr(0, held_.size() - kept));
  held_.erase(0, held_.size() - kept);
  return true;
}

void StopFilter::Finish() {
  if (!held_.empty()) say_(held_);
  held_.clear();
}

}  // namespace kumo
