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

// Limit of the counts of detections in messages, for the evaluations of all partitions together:
// the coordinator's state, which goes with each version, holds those that wait for the others.
inline constexpr int64_t kDetectionBytes = 256 << 10;

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

// An evaluation of one of `partitions` partitions, with its counts of detections, which may take an
// equal part of kDetectionBytes. InvalidArgument if they take more or are damaged.
Result<MetricSums> ReadEvaluation(const checkpoint::SampleSums& message, int partitions);
void WriteEvaluation(const MetricSums& sums, int partitions, checkpoint::SampleSums* message);

}  // namespace kumo
