#include "common/http/process_snapshot.h"

#include <algorithm>

namespace kumo {

const std::vector<double>& DurationCounts::Limits() {
  static const std::vector<double> kLimits = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                              0.5,   1,      2.5,   5,    10,    25,   60,  300};
  return kLimits;
}

void DurationCounts::Add(double seconds) {
  const std::vector<double>& limits = Limits();
  const auto limit = std::lower_bound(limits.begin(), limits.end(), seconds);
  ++counts[static_cast<size_t>(limit - limits.begin())];
  sum_s += seconds;
}

}  // namespace kumo
