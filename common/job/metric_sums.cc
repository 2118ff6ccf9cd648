#include "common/job/metric_sums.h"

#include <cstddef>
#include <string>

#include "proto/checkpoint.pb.h"

namespace kumo {

void MetricSums::Add(const MetricSums& other) {
  samples += other.samples;
  if (sums.size() < other.sums.size()) sums.resize(other.sums.size(), 0.0);
  for (size_t i = 0; i < other.sums.size(); ++i) sums[i] += other.sums[i];
  detections.Add(other.detections);
}

MetricSums ReadSums(const checkpoint::SampleSums& message) {
  return {message.samples(), {message.sums().begin(), message.sums().end()}};
}

void WriteSums(const MetricSums& sums, checkpoint::SampleSums* message) {
  message->Clear();
  message->set_samples(sums.samples);
  message->mutable_sums()->Assign(sums.sums.begin(), sums.sums.end());
}

Result<MetricSums> ReadEvaluation(const checkpoint::SampleSums& message, int partitions) {
  const std::string& counts = message.detections();
  if (std::ssize(counts) > kDetectionBytes / partitions) {
    return InvalidArgument("counts of detections take " + std::to_string(counts.size()) +
                           " bytes; there may be " + std::to_string(kDetectionBytes / partitions));
  }
  MetricSums sums = ReadSums(message);
  KUMO_ASSIGN_OR_RETURN(sums.detections, DetectionCounts::Decode(counts));
  return sums;
}

void WriteEvaluation(const MetricSums& sums, int partitions, checkpoint::SampleSums* message) {
  WriteSums(sums, message);
  if (sums.detections.empty()) return;
  message->set_detections(sums.detections.Encode(kDetectionBytes / partitions));
}

}  // namespace kumo
