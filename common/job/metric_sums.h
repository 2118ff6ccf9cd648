// Metric sums: the sums over samples that the figures of a job's metrics are made of. Workers add
// them up over their samples, servers over partitions and rounds; MetricList has the meaning of
// each sum.
//
// A value. Messages and manifests carry it as checkpoint::SampleSums: ReadSums and WriteSums
// convert at the edges, and nothing else keeps the message.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/detection/average_precision.h"

namespace kumo {

namespace checkpoint {
class SampleSums;
}

// Limit of the counts of detections in a message: those of a partition, and those of all partitions
// together in the coordinator's state, which goes with each version.
inline constexpr int64_t kDetectionBytes = 289 << 10;
static_assert(kDetectionBytes >= DetectionCounts::kLeastLimit);

struct MetricSums {
  int64_t samples = 0;
  std::vector<double> sums = {};  // by MetricList's numbers; empty before the first sample
  // Counts of a detector's evaluation, until MetricList::Settle.
  DetectionCounts detections = {};

  // Adds the sums over other samples, of the same metrics; either side may be empty.
  void Add(const MetricSums& other);

  bool operator==(const MetricSums&) const = default;
};

// Without counts of detections.
MetricSums ReadSums(const checkpoint::SampleSums& message);
void WriteSums(const MetricSums& sums, checkpoint::SampleSums* message);

// An evaluation, with its counts of detections: of the limited ones, if they take more than
// kDetectionBytes. InvalidArgument if they are damaged.
Result<MetricSums> ReadEvaluation(const checkpoint::SampleSums& message);
void WriteEvaluation(const MetricSums& sums, checkpoint::SampleSums* message);

}  // namespace kumo
