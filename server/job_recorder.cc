#include "server/job_recorder.h"

#include <cstdint>
#include <cstdio>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/human_readable.h"
#include "common/job/checkpoint/best.h"
#include "common/job/checkpoint/checkpoint.h"
#include "common/job/checkpoint/origin.h"
#include "server/job_progress.h"

namespace kumo {
namespace {

double Mean(double sum, int64_t samples) {
  return samples > 0 ? sum / static_cast<double>(samples) : 0.0;
}

}  // namespace

JobRecorder::JobRecorder(std::unique_ptr<RunRecorder> recorder, const Experiment::Output& output,
                         const std::optional<checkpoint::Manifest>& restored)
    : recorder_(std::move(recorder)), output_(output) {
  if (restored) last_accuracy_ = ScoreOf(restored->evaluation(), "accuracy");
}

void JobRecorder::Say(std::string_view line) {
  if (recorder_) recorder_->Say(line);
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
  point.loss = Mean(action.train.loss_sum(), action.train.samples());
  point.accuracy = Mean(static_cast<double>(action.train.correct()), action.train.samples());
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
  result.loss = Mean(epoch.train.loss_sum(), epoch.train.samples());
  result.accuracy = Mean(static_cast<double>(epoch.train.correct()), epoch.train.samples());
  if (epoch.validation.samples() > 0) {
    result.validation_loss = Mean(epoch.validation.loss_sum(), epoch.validation.samples());
    result.validation_accuracy =
        Mean(static_cast<double>(epoch.validation.correct()), epoch.validation.samples());
    last_accuracy_ = *result.validation_accuracy;
  }
  result.elapsed_seconds = elapsed_s;
  recorder_->Record(result);
}

void JobRecorder::ShowProgress(const wire::JobStatus& status, TimeUs now) {
  next_progress_ = now + static_cast<TimeUs>(output_.interval_s * 1e6);
  if (status.phase() == "training" && status.has_rounds()) recorder_->Record(ProgressOf(status));
}

void JobRecorder::SayWhomItWaitsFor(const std::string& waits) {
  if (recorder_) {
    recorder_->Say(waits);
    LOG(INFO) << waits;
  } else {
    LOG(WARNING) << waits;
  }
}

void JobRecorder::SayFarewell(bool done, const wire::JobStatus& status, const Disk& disk,
                              const std::string& model) {
  const std::string& output = output_.directory;
  if (done) {
    std::string accuracy = "nothing was evaluated";
    if (last_accuracy_) {
      char text[64];
      std::snprintf(text, sizeof text, "validation accuracy %.4f", *last_accuracy_);
      accuracy = text;
    }
    recorder_->RecordDone();
    recorder_->Say("done: " + accuracy + " after " + HumanDuration(status.elapsed_seconds()));
  }
  if (!model.empty()) recorder_->Say("model   " + model);
  if (const auto best = disk.Best(); best.ok()) {
    recorder_->Say("best    " + JoinPath(disk.folder(), best->name()) + " (" +
                   DescribeEvaluation(best->evaluation()) + ")");
  }
  recorder_->Say("curves  " + output + " (tensorboard --logdir " + output + "; log.jsonl)");
  recorder_->Say("logs    " + JoinPath(output, "logs"));
  if (Status flushed = recorder_->Flush(); !flushed.ok()) LOG(WARNING) << flushed.message();
}

}  // namespace kumo
