// Rate. samples / seconds with weights exp(-age / 60 s), over rounds of one kind; the time since
// the last round counts as far as it exceeds the expected time, so a standstill lowers the rate at
// once:
//
//   rate(now) = S / (T + max(0, now - last - expected))
//   expected = samples of the last round * T / S
//
// Curves. AddRound adds each closed round's sums to the point and to the epoch; a point ends by the
// samples, not by time, so curves of two runs have their points at the same places.
//
// Evaluations. Parts come from partitions in any order, also after later rounds. They are kept by
// partition, and added in partition order when the last one is there: floating-point sums depend on
// their order. The first report of a partition stays, so a repeated one changes nothing.
//
// Early stop. A score is better if it exceeds the best one by min_improvement. The job stops at a
// later version than the evaluated one: the directive of the latter was made before its evaluation
// (EarliestStop).
#include "server/coordinator/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "common/checkpoint/health.h"
#include "common/checkpoint/resume_point.h"
#include "common/settings/option_value.h"
#include "server/protocol/messages.h"

namespace kumo {
namespace {

// Time constant of the rate's weights.
constexpr double kMemorySeconds = 60;

void AddFigures(const std::vector<MetricFigure>& figures,
                google::protobuf::RepeatedPtrField<wire::JobStatus::Figure>* to) {
  for (const MetricFigure& figure : figures) {
    wire::JobStatus::Figure* const one = to->Add();
    one->set_name(figure.name);
    one->set_value(figure.value);
  }
}

}  // namespace

// --- Rate.

bool TrainingRate::AreAlike(const RoundPlan& a, const RoundPlan& b) {
  return a.local_steps == b.local_steps && a.full_precision == b.full_precision;
}

void TrainingRate::OnClosed(const RoundPlan& round, TimeUs now) {
  // The time of a round is the time since the end of the round before it, so the first one after a
  // start or a pause does not count.
  if (last_) {
    const double took = ToSeconds(now - last_at_);
    const double kept = AreAlike(*last_, round) ? std::exp(-took / kMemorySeconds) : 0;
    samples_ = kept * samples_ + static_cast<double>(round.samples.size());
    seconds_ = kept * seconds_ + took;
  }
  last_ = round;
  last_at_ = now;
}

// samples_ / seconds_ with exponential weights. A round that takes longer than the rate predicts
// counts with its lateness so far, so a standstill shows as a falling rate at once.
std::optional<double> TrainingRate::SamplesPerSecond(TimeUs now) const {
  if (samples_ <= 0 || seconds_ <= 0) return std::nullopt;
  const double expected = static_cast<double>(last_->samples.size()) * seconds_ / samples_;
  const double late = std::max(0.0, ToSeconds(now - last_at_) - expected);
  return samples_ / (seconds_ + late);
}

std::optional<double> TrainingRate::SamplesPerSecondOf(const RoundPlan& round, TimeUs now) const {
  if (!last_ || !AreAlike(*last_, round)) return std::nullopt;
  return SamplesPerSecond(now);
}

// --- Held evaluations.

void HeldEvaluations::Hold(int64_t version, int partition, int64_t now) {
  held_[{version, partition}].came_at = now;
}

void HeldEvaluations::Answer(const PeerName& from, const wire::Header& header,
                             StepContext* context) {
  const auto held = held_.find({header.round(), header.partition()});
  // Two workers may have sent the same evaluation, if its lease moved: each keeps it until it is
  // released.
  if (held != held_.end()) held->second.released[from] = Acknowledgement(from, header);
  context->Do(Acknowledgement(from, header, held != held_.end()));
}

void HeldEvaluations::Release(int64_t version, StepContext* context) {
  std::erase_if(held_, [&](const auto& entry) {
    const Held& evaluation = entry.second;
    // Version came_at + 1 has it in its state, and a second copy of that is there once version
    // came_at + 2 is made.
    if (evaluation.came_at >= version - 1) return false;
    for (const auto& [peer, release] : evaluation.released) context->Do(release);
    return true;
  });
}

// --- Epoch ledger.

EpochLedger::EpochLedger(const checkpoint::Manifest& restored) {
  StartFrom(restored.progress());
  // A manifest with invalid metrics was not accepted as a manifest.
  if (Result<MetricList> metrics = ParseMetrics(restored.metrics()); metrics.ok()) {
    metrics_ = *std::move(metrics);
  }
}

EpochLedger::EpochLedger(const wire::CoordinatorState& state, const MetricList& metrics)
    : metrics_(metrics) {
  StartFrom(state.progress());
  for (const auto& ended : state.ended_epochs()) {
    ended_[ended.epoch()] = ReadSums(ended.train());
    Result<DetectionCounts> detections = DetectionCounts::Decode(ended.detections());
    if (!detections.ok()) continue;  // all partitions are asked for their evaluation again
    Evaluations& evaluations = evaluations_[ended.epoch()];
    evaluations.detections = *std::move(detections);
    for (const auto& [partition, sums] : ended.evaluated()) {
      evaluations.parts[partition] = ReadSums(sums);
    }
  }
}

void EpochLedger::StartFrom(const checkpoint::Progress& progress) {
  samples_ = progress.samples();
  judged_.Clear();
  if (progress.has_first_loss()) judged_.set_first_loss(progress.first_loss());
  if (progress.has_lowest_loss()) judged_.set_lowest_loss(progress.lowest_loss());
  if (progress.has_best_score()) judged_.set_best_score(progress.best_score());
  judged_.set_best_epoch(progress.best_epoch());
  judged_.set_best_metric(progress.best_metric());
  judged_.set_stops_at(progress.stops_at());
  last_ = ReadSums(progress.last());
  epoch_ = ReadSums(progress.epoch());
  ended_epoch_ = ReadSums(progress.ended_epoch());
  point_ = ReadSums(progress.point());
}

checkpoint::Progress EpochLedger::progress() const {
  checkpoint::Progress progress = judged_;
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
    ended->set_detections(evaluations->second.detections.Encode());
    for (const auto& [partition, sums] : evaluations->second.parts) {
      WriteSums(sums, &(*ended->mutable_evaluated())[partition]);
    }
  }
}

void EpochLedger::Start(const JobPlan& plan, int64_t version, const MetricList& metrics) {
  for (MetricSums* sums : {&last_, &epoch_, &ended_epoch_, &point_}) {
    *sums = metrics.Translate(metrics_, *sums);
  }
  metrics_ = metrics;
  // A checkpoint with which an epoch ends was saved before its evaluation was complete, and does
  // not contain the parts that had come: all partitions evaluate it again.
  if (const int epoch = plan.EvaluatedEpoch(version); epoch >= 0) {
    ended_[epoch] = ended_epoch_;
  }
}

void EpochLedger::Reconsider(const JobPlan& plan, const StopRule& rule) {
  if (!IsPatienceOver(judged_, plan, rule.patience, rule.metric)) judged_.clear_stops_at();
}

std::optional<MetricSums> EpochLedger::AddRound(const JobPlan& plan, int64_t version,
                                                const MetricSums& metrics, int points_per_epoch) {
  const RoundPlan round = plan.Round(version - 1);
  samples_ = plan.SamplesAt(version);
  last_ = metrics;
  WriteSums(last_, judged_.mutable_last());
  NoteLoss(metrics_, &judged_);
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
         (parts == evaluations_.end() || !parts->second.parts.contains(partition));
}

std::optional<EpochLedger::Epoch> EpochLedger::AddEvaluation(const JobPlan& plan, int64_t version,
                                                             int partition,
                                                             const MetricSums& metrics,
                                                             const StopRule& rule,
                                                             const Classes& classes) {
  const int epoch = plan.EvaluatedEpoch(version);
  const auto train = ended_.find(epoch);
  if (train == ended_.end()) return std::nullopt;  // reported already
  auto& [parts, detections] = evaluations_[epoch];
  // The first report of a partition stays.
  if (parts.emplace(partition, MetricSums{metrics.samples, metrics.sums}).second) {
    detections.Add(metrics.detections);
    detections.Limit(kDetectionBytes);
  }
  if (static_cast<int>(parts.size()) < plan.settings().partitions) return std::nullopt;

  last_validation_ = {.detections = std::move(detections)};
  // Sums of floating-point numbers depend on their order: partition order, not the order of
  // arrival, gives the same figures in every run.
  for (const auto& [p, part] : parts) last_validation_.Add(part);
  std::vector<MetricFigure> of_classes = metrics_.FiguresOfClasses(last_validation_, classes.names);
  metrics_.Settle(&last_validation_);
  Epoch complete{epoch, train->second, last_validation_, std::move(of_classes), "", ""};
  complete.trouble = TroubleOf({epoch + 1, train->second, last_validation_}, progress(), metrics_,
                               classes.count, version == plan.rounds());
  complete.early_stop = JudgeEarlyStop(plan, version, epoch, rule);
  evaluations_.erase(epoch);
  ended_.erase(train);
  return complete;
}

std::string EpochLedger::JudgeEarlyStop(const JobPlan& plan, int64_t version, int epoch,
                                        const StopRule& rule) {
  const Metric* const metric = metrics_.Find(rule.metric);
  if (rule.patience == 0 || metric == nullptr || last_validation_.samples == 0) return "";
  // The first evaluation, or the first since the job goes on with another metric, whose scores
  // cannot be compared: patience counts from the epoch before this one.
  if (judged_.best_metric() != rule.metric) {
    judged_.set_best_metric(rule.metric);
    judged_.clear_best_score();
    judged_.set_best_epoch(epoch);
  }
  // A figure that is missing or not finite is no better than any: its epoch counts as waited.
  const auto figure = MetricList::FigureOf(*metric, last_validation_);
  if (figure && std::isfinite(*figure)) {
    const double score = metric->more_is_better ? *figure : -*figure;
    if (!judged_.has_best_score() || score > judged_.best_score() + rule.min_improvement) {
      judged_.set_best_score(score);
      judged_.set_best_epoch(epoch + 1);
      return "";
    }
  }
  const int64_t waited = int64_t{epoch} + 1 - judged_.best_epoch();
  if (waited < rule.patience || stops_at() > version) return "";
  const int64_t stop = EarliestStop(plan, version);
  if (stop >= plan.rounds()) return "";  // it ends then anyway
  judged_.set_stops_at(stop);
  return "no better validation " + rule.metric + " for " + std::to_string(waited) +
         (waited == 1 ? " epoch" : " epochs") +
         (judged_.has_best_score()
              ? ", since epoch " + std::to_string(judged_.best_epoch()) + " (" +
                    FigureText(metric->more_is_better ? judged_.best_score()
                                                      : -judged_.best_score()) +
                    ")"
              : "") +
         ": the job ends with round " + std::to_string(stops_at()) + " (job.patience)";
}

std::vector<int> EpochLedger::Unevaluated(int partitions) const {
  std::vector<int> missing;
  if (ended_.empty()) return missing;
  const auto parts = evaluations_.find(ended_.begin()->first);
  for (int p = 0; p < partitions; ++p) {
    if (parts == evaluations_.end() || !parts->second.parts.contains(p)) missing.push_back(p);
  }
  return missing;
}

// --- Training progress.

TrainingProgress::TrainingProgress(Settings settings,
                                   const std::optional<checkpoint::Manifest>& restored, TimeUs now)
    : settings_(std::move(settings)), started_(now) {
  StartFrom(restored, std::nullopt);
  if (restored) elapsed_before_ = restored->progress().elapsed_seconds();
}

void TrainingProgress::OnSpec(const JobPlan& plan, const JobSpec& spec, int64_t start_version) {
  metrics_ = spec.metrics;
  ledger_.Start(plan, start_version, metrics_);
  ledger_.Reconsider(plan, settings_.stop_rule);
  validation_samples_ = spec.validation_samples;
  classes_ = {spec.classes, spec.class_names};
  if (auto schedule = Schedule::Make(settings_.schedule, spec.train_samples, settings_.epochs);
      schedule.ok()) {
    schedule_ = *schedule;
  }
}

void TrainingProgress::OnRound(const JobPlan& plan, int64_t version, const MetricSums& metrics,
                               StepContext* context) {
  const RoundPlan round = plan.Round(version - 1);
  rate_.OnClosed(round, context->now);
  context->Do(RoundClosedAction{round.round, round.samples.size(), metrics, metrics_});
  const auto sums = ledger_.AddRound(plan, version, metrics, settings_.points_per_epoch);
  if (!sums) return;
  context->Do(CurvePointAction{version, plan.SamplesAt(version), round.epoch, metrics_, *sums,
                               LearningRateAt(plan, round)});
}

// A repeated evaluation is answered, too, since the answer to the first one may have been lost. The
// lease matters only if the evaluation is new: a repeated one changes nothing.
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
  const Range slice = plan->EvaluationSamples(validation_samples_, partition);
  const int64_t samples = slice.size();
  Result<MetricSums> read = ReadEvaluation(header.metrics());
  KUMO_RETURN_IF_ERROR(read.status().WithContext(which));
  const MetricSums sums = *std::move(read);
  KUMO_RETURN_IF_ERROR(metrics_.Check(sums, samples).WithContext(which));
  if (sums.detections.LargestClass() >= std::min(classes_.count, DetectionCounts::kMostClasses)) {
    return InvalidArgument(which + ": counts of class " +
                           std::to_string(sums.detections.LargestClass()) + " of " +
                           std::to_string(classes_.count));
  }
  Evaluated evaluated;
  evaluated.is_new = ledger_.Waits(*plan, version, partition);
  if (evaluated.is_new && !leases.MayContribute(from, partition, version)) {
    return Unavailable(which + ": is not leased to its sender");
  }
  // Held before it is answered: the answer tells the sender whether to keep it.
  if (evaluated.is_new && settings_.keeps_versions_twice) held_.Hold(version, partition, newest);
  held_.Answer(from, header, context);
  // One partition's picture is enough: the one that has the first validation samples.
  const bool has_picture =
      slice.begin == 0 && samples > 0 && !metrics_.NamesOfEvaluations().empty();
  if (evaluated.is_new && has_picture && !header.picture().empty()) {
    context->Do(EvaluationPictureAction{version, plan->SamplesAt(version), header.picture()});
  }
  evaluated.epoch =
      ledger_.AddEvaluation(*plan, version, partition, sums, settings_.stop_rule, classes_);
  if (evaluated.epoch) {
    trouble_ = evaluated.epoch->trouble;
    context->Do(EpochEvaluatedAction{evaluated.epoch->epoch, metrics_, evaluated.epoch->train,
                                     evaluated.epoch->validation, evaluated.epoch->classes, version,
                                     plan->SamplesAt(version), evaluated.epoch->trouble,
                                     evaluated.epoch->early_stop});
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
  trouble_ = restored ? restored->evaluation().trouble() : "";
  if (!plan) return;
  ledger_.Start(*plan, restored ? restored->version() : 0, metrics_);
  ledger_.Reconsider(*plan, settings_.stop_rule);
}

void TrainingProgress::TakeOver(int64_t version, const wire::CoordinatorState& state,
                                StepContext* context) {
  ledger_ = EpochLedger(state, metrics_);
  // ElapsedSeconds adds the time since this process started; at this moment the sum is the former
  // coordinator's.
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
  status->set_epochs(settings_.epochs);
  status->set_trouble(trouble_);
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
  // The round that is trained; the last one once the job is done.
  const RoundPlan round = plan.Round(std::min(version, plan.rounds() - 1));
  status->set_epoch(round.epoch + 1);
  if (const auto lr = LearningRateAt(plan, round)) status->set_learning_rate(*lr);
  if (const auto left = SecondsLeft(now, version, plan, round_ms)) status->set_eta_seconds(*left);
}

// The learning rate of a round in its shortest decimal form: 0.05 instead of 0.0500000007.
std::optional<double> TrainingProgress::LearningRateAt(const JobPlan& plan,
                                                       const RoundPlan& round) const {
  if (!schedule_) return std::nullopt;
  const float rate = schedule_->RateAt(round.first_sample, plan.SamplesPerStep(round));
  return std::strtod(WriteValue(rate).c_str(), nullptr);
}

// The remaining time, by the rate of the remaining rounds. During a warm-up their rate is not known
// yet: then a block's minibatch is assumed to take as long as one of the warm-up takes to compute.
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
