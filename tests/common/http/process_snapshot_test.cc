#include "common/http/process_snapshot.h"

#include <gtest/gtest.h>

#include <numeric>

namespace kumo {
namespace {

// Prometheus' "le": less or equal.
TEST(DurationCounts, ALimitIsPartOfWhatItLimits) {
  const std::vector<double>& limits = DurationCounts::Limits();
  for (size_t i = 0; i < limits.size(); ++i) {
    DurationCounts counts;
    counts.Add(limits[i]);
    EXPECT_EQ(counts.counts[i], 1u) << limits[i];
    counts.Add(limits[i] * 1.0001);
    EXPECT_EQ(counts.counts[i + 1], 1u) << limits[i];
    EXPECT_EQ(std::accumulate(counts.counts.begin(), counts.counts.end(), uint64_t{0}), 2u);
    EXPECT_DOUBLE_EQ(counts.sum_s, limits[i] * 2.0001);
  }
}

}  // namespace
}  // namespace kumo
