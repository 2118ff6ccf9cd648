#include "common/job/metric_sums.h"

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

Result<MetricSums> ReadEvaluation(const checkpoint::SampleSums& message) {
  MetricSums sums = ReadSums(message);
  KUMO_ASSIGN_OR_RETURN(sums.detections, DetectionCounts::Decode(message.detections()));
  return sums;
}

void WriteEvaluation(const MetricSums& sums, checkpoint::SampleSums* message) {
  WriteSums(sums, message);
  DetectionCounts detections = sums.detections;
  detections.Limit(kDetectionBytes);
  if (!detections.empty()) message->set_detections(detections.Encode());
}

}  // namespace kumo
