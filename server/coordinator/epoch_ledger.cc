#include "server/coordinator/epoch_ledger.h"

#include <utility>

namespace kumo {
namespace {

void Add(const wire::Metrics& from, wire::Metrics* to) {
  to->set_samples(to->samples() + from.samples());
  to->set_loss_sum(to->loss_sum() + from.loss_sum());
  to->set_correct(to->correct() + from.correct());
}

wire::Metrics Sums(int64_t samples, double loss_sum, int64_t correct) {
  wire::Metrics sums;
  sums.set_samples(samples);
  sums.set_loss_sum(loss_sum);
  sums.set_correct(correct);
  return sums;
}

}  // namespace

EpochLedger::EpochLedger(const wire::CoordinatorState& state) : progress_(state.progress()) {
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

void EpochLedger::Start(const JobPlan& plan, int64_t version) {
  const int epoch = plan.EvaluatedEpoch(version);
  if (epoch < 0) return;
  ended_[epoch] = Sums(progress_.ended_epoch_samples(), progress_.ended_epoch_loss_sum(),
                       progress_.ended_epoch_correct());
}

std::optional<wire::Metrics> EpochLedger::AddRound(const JobPlan& plan, int64_t version,
                                                   const wire::Metrics& metrics,
                                                   int points_per_epoch) {
  const RoundPlan round = plan.Round(version - 1);
  const auto samples = static_cast<double>(metrics.samples());
  progress_.set_samples(plan.SamplesAt(version));
  progress_.set_last_loss(metrics.loss_sum() / samples);
  progress_.set_last_accuracy(static_cast<double>(metrics.correct()) / samples);
  AddToEpoch(plan, round, metrics);

  wire::Metrics point =
      Sums(progress_.point_samples(), progress_.point_loss_sum(), progress_.point_correct());
  Add(metrics, &point);
  std::optional<wire::Metrics> complete;
  if (plan.EndsPart(round, points_per_epoch)) complete = std::exchange(point, wire::Metrics());
  progress_.set_point_samples(point.samples());
  progress_.set_point_loss_sum(point.loss_sum());
  progress_.set_point_correct(point.correct());
  return complete;
}

void EpochLedger::AddToEpoch(const JobPlan& plan, const RoundPlan& round,
                             const wire::Metrics& metrics) {
  wire::Metrics epoch =
      Sums(progress_.epoch_samples(), progress_.epoch_loss_sum(), progress_.epoch_correct());
  Add(metrics, &epoch);
  if (round.ends_epoch) {
    if (plan.EvaluatedEpoch(round.round + 1) >= 0) ended_[round.epoch] = epoch;
    progress_.set_ended_epoch_samples(epoch.samples());
    progress_.set_ended_epoch_loss_sum(epoch.loss_sum());
    progress_.set_ended_epoch_correct(epoch.correct());
    epoch.Clear();
  }
  progress_.set_epoch_samples(epoch.samples());
  progress_.set_epoch_loss_sum(epoch.loss_sum());
  progress_.set_epoch_correct(epoch.correct());
}

bool EpochLedger::Waits(const JobPlan& plan, int64_t version, int partition) const {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto parts = evaluations_.find(epoch);
  return ended_.contains(epoch) &&
         (parts == evaluations_.end() || !parts->second.contains(partition));
}

std::optional<EpochLedger::Epoch> EpochLedger::AddEvaluation(const JobPlan& plan, int64_t version,
                                                             int partition,
                                                             const wire::Metrics& metrics) {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto train = ended_.find(epoch);
  if (train == ended_.end()) return std::nullopt;  // reported already
  std::map<int, wire::Metrics>& parts = evaluations_[epoch];
  parts.emplace(partition, metrics);
  if (static_cast<int>(parts.size()) < plan.settings().partitions) return std::nullopt;

  last_validation_.Clear();
  for (const auto& [p, part] : parts) Add(part, &last_validation_);  // in partition order
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
