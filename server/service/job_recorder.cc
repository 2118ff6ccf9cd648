#include "server/service/job_recorder.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/printable.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/origin.h"
#include "common/job/phase.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

// Mean of the known values.
class Mean {
 public:
  void Add(bool known, double value) {
    if (!known) return;
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional<double>(sum_ / count_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

template <typename T>
std::optional<T> Known(bool known, T value) {
  return known ? std::optional<T>(value) : std::nullopt;
}

// Takes the figures of the workers' reports.
void AddWorkers(const wire::JobStatus& status, RoundProgress* progress) {
  Mean compute, wait, network;
  double slowest = 0;
  for (const auto& worker : status.workers()) {
    const wire::WorkerReport& report = worker.report();
    compute.Add(report.has_compute_ms(), report.compute_ms());
    wait.Add(report.has_wait_ms(), report.wait_ms());
    network.Add(report.has_network_ms(), report.network_ms());
    progress->bytes_sent += report.bytes_sent();
    progress->bytes_received += report.bytes_received();
    // The worker with the longest round without waits is the one that the others wait for.
    const double busy = report.compute_ms() + report.network_ms();
    if (status.workers_size() > 1 && busy > slowest) {
      slowest = busy;
      progress->slowest = worker.name();
    }
    if (worker.has_silent_seconds()) {
      progress->silent.push_back({worker.name(), worker.silent_seconds()});
    }
  }
  progress->compute_ms = compute.value();
  progress->wait_ms = wait.value();
  progress->network_ms = network.value();
  std::sort(progress->silent.begin(), progress->silent.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

}  // namespace

RoundProgress ProgressOf(const wire::JobStatus& status) {
  RoundProgress progress;
  progress.round = status.round();
  progress.rounds = status.rounds();
  progress.samples = status.samples();
  progress.total_samples = status.total_samples();
  progress.epoch = status.epoch();
  progress.epochs = status.epochs();
  progress.figures = FiguresOf(status);
  progress.learning_rate = Known(status.has_learning_rate(), status.learning_rate());
  progress.samples_per_second = Known(status.has_samples_per_second(), status.samples_per_second());
  progress.workers = status.workers_size();
  progress.elapsed_seconds = status.elapsed_seconds();
  progress.eta_seconds = Known(status.has_eta_seconds(), status.eta_seconds());
  AddWorkers(status, &progress);
  return progress;
}

JobRecorder::JobRecorder(std::unique_ptr<RunRecorder> recorder, const Experiment::Output& output,
                         const std::optional<checkpoint::Manifest>& restored)
    : recorder_(std::move(recorder)), output_(output) {
  if (restored) last_ = HeadlineOf(*restored);
}

void JobRecorder::Say(std::string_view line) {
  if (recorder_) recorder_->Say(line);
}

Status JobRecorder::Begin(const SetAside& aside, const MetricList& metrics) {
  earlier_ = aside.folder;
  if (!earlier_.empty()) {
    Say((aside.whole ? "starts anew; the run until now is in "
                     : "the later rounds until now, with their curves, are in ") +
        earlier_);
  }
  return recorder_ ? recorder_->Begin(metrics) : OkStatus();
}

void JobRecorder::Record(const StartedFromAction& started) {
  const checkpoint::Origin& origin = started.origin;
  for (const std::string& line : LinesOf(origin)) {
    LOG(INFO) << line;
    Say(line);
  }
  if (!recorder_) return;
  recorder_->Record(StartedRun{origin.checkpoint(),
                               {origin.taken().begin(), origin.taken().end()},
                               {origin.left().begin(), origin.left().end()}});
}

void JobRecorder::Record(const WentBackAction& back) {
  if (!recorder_) return;
  recorder_->GoBack(back.version, back.samples);
  if (back.version < 0) return;
  recorder_->Say(back.why + ": goes on from round " + std::to_string(back.version));
}

void JobRecorder::Record(const WentOnAction& on) {
  if (recorder_) recorder_->GoBack(on.version, on.samples);
}

void JobRecorder::Record(const CurvePointAction& action, double elapsed_s) {
  if (!recorder_) return;
  CurvePoint point;
  point.round = action.version;
  point.samples = action.samples;
  point.epoch = action.epoch + 1;
  point.figures = action.metrics.FiguresOf(action.train);
  point.learning_rate = action.learning_rate;
  point.elapsed_seconds = elapsed_s;
  recorder_->Record(point);
}

void JobRecorder::Record(const EpochEvaluatedAction& epoch, double elapsed_s) {
  if (!recorder_) return;
  EpochResult result;
  result.epoch = epoch.epoch + 1;
  result.round = epoch.version;
  result.samples = epoch.samples;
  result.figures = epoch.metrics.FiguresOf(epoch.train);
  result.validation = epoch.metrics.FiguresOf(epoch.validation);
  result.classes = epoch.classes;
  result.evaluated = epoch.metrics.NamesOfEvaluations();
  if (const auto headline = epoch.metrics.Headline(epoch.validation)) last_ = headline;
  result.elapsed_seconds = elapsed_s;
  recorder_->Record(result);
  if (!epoch.trouble.empty() && trouble_.empty()) LOG(WARNING) << epoch.trouble;
  trouble_ = epoch.trouble;
  if (!epoch.early_stop.empty()) recorder_->Say(epoch.early_stop);
}

void JobRecorder::Record(const EvaluationPictureAction& picture) {
  if (recorder_)
    recorder_->Record(EvaluationPicture{picture.version, picture.samples, picture.png});
}

std::optional<std::string> JobRecorder::NewFailure() {
  const std::string failure = recorder_ ? recorder_->failure().message() : "";
  if (failure == failure_) return std::nullopt;
  return failure_ = failure;
}

void JobRecorder::ShowProgress(const wire::JobStatus& status, TimeUs now) {
  next_progress_ = now + static_cast<TimeUs>(output_.interval_s * 1e6);
  if (status.phase() == WordOf(JobPhase::kTraining) && status.has_rounds()) {
    recorder_->Record(ProgressOf(status));
  }
}

void JobRecorder::SayWaitsFor(const std::string& waits) {
  if (recorder_) {
    recorder_->Say(waits);
    LOG(INFO) << waits;
  } else {
    LOG(WARNING) << waits;
  }
}

void JobRecorder::Say(const SavingHealthAction& health) {
  const std::string round = "round " + std::to_string(health.version);
  if (health.why.empty()) {
    Say("checkpoints are saved again: " + round);
    return;
  }
  // Not by the log, which may be on the same full disk.
  Say("warning: the checkpoint of " + round + " could not be saved: " + health.why +
      "; the training continues and tries again; " +
      (health.last < 0 ? "there is no checkpoint yet"
                       : "the newest checkpoint is of round " + std::to_string(health.last)));
}

void JobRecorder::SayEnd(bool done, const wire::JobStatus& status, const Disk& disk,
                         const std::string& model) {
  const std::string& output = output_.directory;
  if (done) {
    const std::string result = last_ ? "validation " + Described(*last_) : "nothing was evaluated";
    recorder_->RecordDone();
    recorder_->Say("done: " + result + " after " + HumanDuration(status.elapsed_seconds()));
  }
  if (!status.trouble().empty()) recorder_->Say("warning: " + status.trouble());
  if (!model.empty()) recorder_->Say("model   " + model);
  if (const auto best = disk.Best(); best.ok()) {
    recorder_->Say("best    " + JoinPath(disk.folder(), best->name()) + " (" +
                   DescribeEvaluation(*best) + ")");
  }
  if (!earlier_.empty()) recorder_->Say("earlier " + earlier_);
  recorder_->Say("curves  " + output + " (tensorboard --logdir " + output + "; log.jsonl)");
  recorder_->Say("logs    " + JoinPath(output, "logs"));
  if (Status flushed = recorder_->Flush(); !flushed.ok()) {
    recorder_->Say("warning: " + flushed.message());
    LOG(WARNING) << flushed.message();
  }
}

}  // namespace kumo
