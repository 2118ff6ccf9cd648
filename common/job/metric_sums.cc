#include "common/job/metric_sums.h"

#include <cstddef>
#include <utility>

#include "proto/checkpoint.pb.h"

namespace kumo {

void MetricSums::Add(const MetricSums& other) {
  samples += other.samples;
  if (sums.size() < other.sums.size()) sums.resize(other.sums.size(), 0.0);
  for (size_t i = 0; i < other.sums.size(); ++i) sums[i] += other.sums[i];
  detections.Add(other.detections);
}

MetricSums ReadSums(const checkpoint::SampleSums& message) {
  MetricSums sums = {message.samples(), {message.sums().begin(), message.sums().end()}};
  Result<DetectionCounts> detections = DetectionCounts::Decode(message.detections());
  if (detections.ok()) sums.detections = *std::move(detections);
  return sums;
}

void WriteSums(const MetricSums& sums, checkpoint::SampleSums* message) {
  message->Clear();
  message->set_samples(sums.samples);
  message->mutable_sums()->Assign(sums.sums.begin(), sums.sums.end());
  if (!sums.detections.empty()) message->set_detections(sums.detections.Encode(kDetectionBytes));
}

}  // namespace kumo
