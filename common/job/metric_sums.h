// Metric sums: the sums over samples that the figures of a job's metrics are made of. Workers add
// them up over their samples, servers over partitions and rounds; MetricList has the meaning of
// each sum.
//
// A value. Messages and manifests carry it as checkpoint::SampleSums: ReadSums and WriteSums
// convert at the edges, and nothing else keeps the message.
#pragma once

#include <cstdint>
#include <vector>

#include "common/detection/average_precision.h"

namespace kumo {

namespace checkpoint {
class SampleSums;
}

// Limit of the counts of one partition's evaluation in a message. The coordinator's state, which
// goes with each version, holds those of all partitions.
inline constexpr int64_t kDetectionBytes = 48 << 10;

struct MetricSums {
  int64_t samples = 0;
  std::vector<double> sums = {};  // by MetricList's numbers; empty before the first sample
  // Of an evaluation of a detector, until MetricList::Settle.
  DetectionCounts detections = {};

  // Adds the sums over other samples, of the same metrics; either side may be empty.
  void Add(const MetricSums& other);

  bool operator==(const MetricSums&) const = default;
};

// Counts of detections that are damaged are none.
MetricSums ReadSums(const checkpoint::SampleSums& message);
void WriteSums(const MetricSums& sums, checkpoint::SampleSums* message);

}  // namespace kumo
