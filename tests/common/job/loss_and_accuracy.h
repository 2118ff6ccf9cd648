// The metrics that most networks have, and sums of them.
#pragma once

#include <cstdint>
#include <string>

#include "common/job/metric_list.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"

namespace kumo::test {

inline MetricList LossAndAccuracy() {
  return MetricList::Make({{"loss", 0, MetricFormula::kMean, false},
                           {"accuracy", 1, MetricFormula::kShare, true}})
      .value();
}

inline void SetSum(int place, double value, checkpoint::SampleSums* sums) {
  if (sums->sums_size() < 2) sums->mutable_sums()->Resize(2, 0.0);
  sums->set_sums(place, value);
}
inline void SetLossSum(double loss, checkpoint::SampleSums* sums) { SetSum(0, loss, sums); }
inline void SetCorrect(double correct, checkpoint::SampleSums* sums) { SetSum(1, correct, sums); }
inline MetricSums SumsOf(int64_t samples, double loss, double correct) {
  return {samples, {loss, correct}};
}
// The same as messages and manifests have it.
inline checkpoint::SampleSums SumsMessage(int64_t samples, double loss, double correct) {
  checkpoint::SampleSums message;
  WriteSums(SumsOf(samples, loss, correct), &message);
  return message;
}
// In words, to the bit.
inline std::string Exactly(const MetricSums& sums) {
  checkpoint::SampleSums message;
  WriteSums(sums, &message);
  return message.ShortDebugString();
}
// 0 if there is none.
inline double LossSum(const MetricSums& sums) { return sums.sums.empty() ? 0 : sums.sums[0]; }
inline double Correct(const MetricSums& sums) { return sums.sums.size() > 1 ? sums.sums[1] : 0; }

inline void AddFigure(const std::string& name, double value, wire::JobStatus* status) {
  wire::JobStatus::Figure* const figure = status->add_figures();
  figure->set_name(name);
  figure->set_value(value);
}
inline void AddValidationFigure(const std::string& name, double value, wire::JobStatus* status) {
  wire::JobStatus::Figure* const figure = status->add_validation_figures();
  figure->set_name(name);
  figure->set_value(value);
}

}  // namespace kumo::test
