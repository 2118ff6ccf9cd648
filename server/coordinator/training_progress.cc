#include "server/coordinator/training_progress.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/settings/option_value.h"

namespace kumo {
namespace {

void AddFigures(const std::vector<MetricFigure>& figures,
                google::protobuf::RepeatedPtrField<wire::JobStatus::Figure>* to) {
  for (const MetricFigure& figure : figures) {
    wire::JobStatus::Figure* const one = to->Add();
    one->set_name(figure.name);
    one->set_value(figure.value);
  }
}

}  // namespace

TrainingProgress::TrainingProgress(const CoordinatorSettings& settings,
                                   const std::optional<checkpoint::Manifest>& restored, TimeUs now)
    : schedule_settings_(settings.schedule),
      epochs_(settings.epochs),
      points_per_epoch_(settings.points_per_epoch),
      keeps_versions_twice_(settings.cluster.KeepsVersionsTwice()),
      started_(now) {
  StartFrom(restored, std::nullopt);
  if (restored) elapsed_before_ = restored->progress().elapsed_seconds();
}

void TrainingProgress::OnSpec(const JobPlan& plan, const JobSpec& spec, int64_t start_version) {
  metrics_ = spec.metrics;
  ledger_.Start(plan, start_version, metrics_);
  validation_samples_ = spec.validation_samples;
  if (auto schedule = Schedule::Make(schedule_settings_, spec.train_samples, epochs_);
      schedule.ok()) {
    schedule_ = *schedule;
  }
}

void TrainingProgress::OnRound(const JobPlan& plan, int64_t version, const MetricSums& metrics,
                               StepContext* context) {
  const RoundPlan round = plan.Round(version - 1);
  rate_.OnClosed(round, context->now);
  context->Do(RoundClosedAction{round.round, metrics, metrics_});
  const auto sums = ledger_.AddRound(plan, version, metrics, points_per_epoch_);
  if (!sums) return;
  context->Do(CurvePointAction{version, plan.SamplesAt(version), round.epoch, metrics_, *sums,
                               LearningRateAt(plan, round)});
}

Result<TrainingProgress::Evaluated> TrainingProgress::OnEvaluated(
    const PeerName& from, const wire::Header& header, const LeaseTable& leases,
    const std::optional<JobPlan>& plan, int64_t newest, StepContext* context) {
  const int64_t version = header.round();
  const int partition = header.partition();
  const std::string which = "an evaluation of version " + std::to_string(version) + ", partition " +
                            std::to_string(partition);
  if (!plan || version > newest || plan->EvaluatedEpoch(version) < 0 || partition < 0 ||
      partition >= plan->settings().partitions) {
    return InvalidArgument(which);
  }
  const int64_t samples = plan->EvaluationSamples(validation_samples_, partition).size();
  const MetricSums sums = ReadSums(header.metrics());
  KUMO_RETURN_IF_ERROR(metrics_.Check(sums, samples).WithContext(which));
  Evaluated evaluated;
  evaluated.is_new = ledger_.Waits(*plan, version, partition);
  if (evaluated.is_new && !leases.MayContribute(from, partition, version)) {
    return Unavailable(which + ": is not leased to its sender");
  }
  if (evaluated.is_new && keeps_versions_twice_) held_.Hold(version, partition, newest);
  held_.Answer(from, header, context);
  evaluated.epoch = ledger_.AddEvaluation(*plan, version, partition, sums);
  if (evaluated.epoch) {
    context->Do(EpochEvaluatedAction{evaluated.epoch->epoch, metrics_, evaluated.epoch->train,
                                     evaluated.epoch->validation, version,
                                     plan->SamplesAt(version)});
  }
  return evaluated;
}

void TrainingProgress::GoBack() {
  rate_.Forget();
  held_.Forget();
}

void TrainingProgress::StartFrom(const std::optional<checkpoint::Manifest>& restored,
                                 const std::optional<JobPlan>& plan) {
  ledger_ = restored ? EpochLedger(*restored) : EpochLedger();
  if (plan) ledger_.Start(*plan, restored ? restored->version() : 0, metrics_);
}

void TrainingProgress::TakeOver(int64_t version, const wire::CoordinatorState& state,
                                StepContext* context) {
  ledger_ = EpochLedger(state, metrics_);
  elapsed_before_ = state.progress().elapsed_seconds() - ToSeconds(context->now - started_);
  context->Do(WentOnAction{version, ledger_.samples()});
}

checkpoint::Progress TrainingProgress::Snapshot(TimeUs now) const {
  checkpoint::Progress progress = ledger_.progress();
  progress.set_elapsed_seconds(ElapsedSeconds(now));
  return progress;
}

wire::CoordinatorState TrainingProgress::State(TimeUs now) const {
  wire::CoordinatorState state;
  ledger_.Describe(&state);
  state.mutable_progress()->set_elapsed_seconds(ElapsedSeconds(now));
  return state;
}

void TrainingProgress::Describe(TimeUs now, int64_t version, const std::optional<JobPlan>& plan,
                                double round_ms, wire::JobStatus* status) const {
  status->set_elapsed_seconds(ElapsedSeconds(now));
  status->set_round(version);
  status->set_epochs(epochs_);
  AddFigures(metrics_.FiguresOf(ledger_.last_round()), status->mutable_figures());
  AddFigures(metrics_.FiguresOf(ledger_.last_validation()), status->mutable_validation_figures());
  const auto rate = rate_.SamplesPerSecond(now);
  if (rate) status->set_samples_per_second(*rate);
  if (plan) DescribePlan(now, version, *plan, round_ms, status);
}

void TrainingProgress::DescribePlan(TimeUs now, int64_t version, const JobPlan& plan,
                                    double round_ms, wire::JobStatus* status) const {
  status->set_rounds(plan.rounds());
  status->set_samples(plan.SamplesAt(version));
  status->set_total_samples(plan.samples());
  const RoundPlan round = plan.Round(std::min(version, plan.rounds() - 1));
  status->set_epoch(round.epoch + 1);
  if (const auto lr = LearningRateAt(plan, round)) status->set_learning_rate(*lr);
  if (const auto left = SecondsLeft(now, version, plan, round_ms)) status->set_eta_seconds(*left);
}

// Of a round, as people write it: 0.05 instead of 0.0500000007.
std::optional<double> TrainingProgress::LearningRateAt(const JobPlan& plan,
                                                       const RoundPlan& round) const {
  if (!schedule_) return std::nullopt;
  const int64_t step =
      round.mode == SyncMode::kBlock ? plan.LargestMinibatch() : round.samples.size();
  return std::strtod(WriteValue(schedule_->RateAt(round.first_sample, step)).c_str(), nullptr);
}

// By the rate of rounds like those that are left. While there is a warm-up, blocks are taken to be
// computed as fast as its minibatches are, and to wait for nobody.
std::optional<double> TrainingProgress::SecondsLeft(TimeUs now, int64_t version,
                                                    const JobPlan& plan, double round_ms) const {
  const RoundPlan last = plan.Round(plan.rounds() - 1);
  const RoundPlan round = plan.Round(std::min(version, plan.rounds() - 1));
  const auto rate = rate_.SamplesPerSecondOf(round, now);
  if (!rate) return std::nullopt;
  const int64_t samples = plan.SamplesAt(version);
  if (TrainingRate::AreAlike(round, last)) {
    return static_cast<double>(plan.samples() - samples) / *rate;
  }
  if (round_ms <= 0) return std::nullopt;
  const PlanSettings& settings = plan.settings();
  const int64_t minibatches = int64_t{settings.partitions} * settings.minibatch;
  return static_cast<double>(settings.warmup_samples - samples) / *rate +
         static_cast<double>(plan.samples() - settings.warmup_samples) * round_ms * 1e-3 /
             static_cast<double>(minibatches);
}

}  // namespace kumo
