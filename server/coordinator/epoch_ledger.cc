#include "server/coordinator/epoch_ledger.h"

#include <utility>

namespace kumo {

EpochLedger::EpochLedger(const checkpoint::Manifest& restored) {
  StartFrom(restored.progress());
  // A manifest that says otherwise was not read as one.
  if (Result<MetricList> metrics = ParseMetrics(restored.metrics()); metrics.ok()) {
    metrics_ = *std::move(metrics);
  }
}

EpochLedger::EpochLedger(const wire::CoordinatorState& state, const MetricList& metrics)
    : metrics_(metrics) {
  StartFrom(state.progress());
  for (const auto& ended : state.ended_epochs()) {
    ended_[ended.epoch()] = ReadSums(ended.train());
    auto& evaluations = evaluations_[ended.epoch()];
    for (const auto& [partition, sums] : ended.evaluated()) evaluations[partition] = ReadSums(sums);
  }
}

void EpochLedger::StartFrom(const checkpoint::Progress& progress) {
  samples_ = progress.samples();
  last_ = ReadSums(progress.last());
  epoch_ = ReadSums(progress.epoch());
  ended_epoch_ = ReadSums(progress.ended_epoch());
  point_ = ReadSums(progress.point());
}

checkpoint::Progress EpochLedger::progress() const {
  checkpoint::Progress progress;
  progress.set_samples(samples_);
  WriteSums(last_, progress.mutable_last());
  WriteSums(epoch_, progress.mutable_epoch());
  WriteSums(ended_epoch_, progress.mutable_ended_epoch());
  WriteSums(point_, progress.mutable_point());
  return progress;
}

void EpochLedger::Describe(wire::CoordinatorState* state) const {
  *state->mutable_progress() = progress();
  for (const auto& [epoch, train] : ended_) {
    auto* ended = state->add_ended_epochs();
    ended->set_epoch(epoch);
    WriteSums(train, ended->mutable_train());
    const auto evaluations = evaluations_.find(epoch);
    if (evaluations == evaluations_.end()) continue;
    for (const auto& [partition, sums] : evaluations->second) {
      WriteSums(sums, &(*ended->mutable_evaluated())[partition]);
    }
  }
}

void EpochLedger::Start(const JobPlan& plan, int64_t version, const MetricList& metrics) {
  for (MetricSums* sums : {&last_, &epoch_, &ended_epoch_, &point_}) {
    *sums = metrics.Translate(metrics_, *sums);
  }
  metrics_ = metrics;
  if (const int epoch = plan.EvaluatedEpoch(version); epoch >= 0) {
    ended_[epoch] = ended_epoch_;
  }
}

std::optional<MetricSums> EpochLedger::AddRound(const JobPlan& plan, int64_t version,
                                                const MetricSums& metrics, int points_per_epoch) {
  const RoundPlan round = plan.Round(version - 1);
  samples_ = plan.SamplesAt(version);
  last_ = metrics;
  AddToEpoch(plan, round, metrics);
  point_.Add(metrics);
  if (!plan.EndsPart(round, points_per_epoch)) return std::nullopt;
  return std::exchange(point_, MetricSums());
}

void EpochLedger::AddToEpoch(const JobPlan& plan, const RoundPlan& round,
                             const MetricSums& metrics) {
  epoch_.Add(metrics);
  if (!round.ends_epoch) return;
  if (plan.EvaluatedEpoch(round.round + 1) >= 0) ended_[round.epoch] = epoch_;
  ended_epoch_ = std::exchange(epoch_, MetricSums());
}

bool EpochLedger::Waits(const JobPlan& plan, int64_t version, int partition) const {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto parts = evaluations_.find(epoch);
  return ended_.contains(epoch) &&
         (parts == evaluations_.end() || !parts->second.contains(partition));
}

std::optional<EpochLedger::Epoch> EpochLedger::AddEvaluation(const JobPlan& plan, int64_t version,
                                                             int partition,
                                                             const MetricSums& metrics) {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto train = ended_.find(epoch);
  if (train == ended_.end()) return std::nullopt;  // reported already
  std::map<int, MetricSums>& parts = evaluations_[epoch];
  parts.emplace(partition, metrics);
  if (static_cast<int>(parts.size()) < plan.settings().partitions) return std::nullopt;

  last_validation_ = {};
  for (const auto& [p, part] : parts) last_validation_.Add(part);  // in partition order
  Epoch complete{epoch, train->second, last_validation_};
  evaluations_.erase(epoch);
  ended_.erase(train);
  return complete;
}

std::vector<int> EpochLedger::Unevaluated(int partitions) const {
  std::vector<int> missing;
  if (ended_.empty()) return missing;
  const auto parts = evaluations_.find(ended_.begin()->first);
  for (int p = 0; p < partitions; ++p) {
    if (parts == evaluations_.end() || !parts->second.contains(p)) missing.push_back(p);
  }
  return missing;
}

}  // namespace kumo
