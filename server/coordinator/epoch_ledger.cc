#include "server/coordinator/epoch_ledger.h"

#include <utility>

namespace kumo {

EpochLedger::EpochLedger(const checkpoint::Manifest& restored) : progress_(restored.progress()) {
  // A manifest that says otherwise was not read as one.
  if (Result<MetricList> metrics = ParseMetrics(restored.metrics()); metrics.ok()) {
    metrics_ = *std::move(metrics);
  }
}

EpochLedger::EpochLedger(const wire::CoordinatorState& state, const MetricList& metrics)
    : metrics_(metrics), progress_(state.progress()) {
  for (const auto& ended : state.ended_epochs()) {
    ended_[ended.epoch()] = ended.train();
    auto& evaluations = evaluations_[ended.epoch()];
    evaluations.insert(ended.evaluated().begin(), ended.evaluated().end());
  }
}

void EpochLedger::Describe(wire::CoordinatorState* state) const {
  *state->mutable_progress() = progress_;
  for (const auto& [epoch, train] : ended_) {
    auto* ended = state->add_ended_epochs();
    ended->set_epoch(epoch);
    *ended->mutable_train() = train;
    const auto evaluations = evaluations_.find(epoch);
    if (evaluations == evaluations_.end()) continue;
    ended->mutable_evaluated()->insert(evaluations->second.begin(), evaluations->second.end());
  }
}

void EpochLedger::Start(const JobPlan& plan, int64_t version, const MetricList& metrics) {
  for (checkpoint::SampleSums* sums :
       {progress_.mutable_last(), progress_.mutable_epoch(), progress_.mutable_ended_epoch(),
        progress_.mutable_point()}) {
    *sums = metrics.Translate(metrics_, *sums);
  }
  metrics_ = metrics;
  if (const int epoch = plan.EvaluatedEpoch(version); epoch >= 0) {
    ended_[epoch] = progress_.ended_epoch();
  }
}

std::optional<checkpoint::SampleSums> EpochLedger::AddRound(const JobPlan& plan, int64_t version,
                                                            const checkpoint::SampleSums& metrics,
                                                            int points_per_epoch) {
  const RoundPlan round = plan.Round(version - 1);
  progress_.set_samples(plan.SamplesAt(version));
  *progress_.mutable_last() = metrics;
  AddToEpoch(plan, round, metrics);
  AddSums(metrics, progress_.mutable_point());
  if (!plan.EndsPart(round, points_per_epoch)) return std::nullopt;
  return std::exchange(*progress_.mutable_point(), checkpoint::SampleSums());
}

void EpochLedger::AddToEpoch(const JobPlan& plan, const RoundPlan& round,
                             const checkpoint::SampleSums& metrics) {
  checkpoint::SampleSums* const epoch = progress_.mutable_epoch();
  AddSums(metrics, epoch);
  if (!round.ends_epoch) return;
  if (plan.EvaluatedEpoch(round.round + 1) >= 0) ended_[round.epoch] = *epoch;
  *progress_.mutable_ended_epoch() = std::exchange(*epoch, checkpoint::SampleSums());
}

bool EpochLedger::Waits(const JobPlan& plan, int64_t version, int partition) const {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto parts = evaluations_.find(epoch);
  return ended_.contains(epoch) &&
         (parts == evaluations_.end() || !parts->second.contains(partition));
}

std::optional<EpochLedger::Epoch> EpochLedger::AddEvaluation(
    const JobPlan& plan, int64_t version, int partition, const checkpoint::SampleSums& metrics) {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto train = ended_.find(epoch);
  if (train == ended_.end()) return std::nullopt;  // reported already
  std::map<int, checkpoint::SampleSums>& parts = evaluations_[epoch];
  parts.emplace(partition, metrics);
  if (static_cast<int>(parts.size()) < plan.settings().partitions) return std::nullopt;

  last_validation_.Clear();
  for (const auto& [p, part] : parts) AddSums(part, &last_validation_);  // in partition order
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
