#include "server/service/job_recorder.h"

#include <cstdint>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/human_readable.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/origin.h"
#include "server/service/job_progress.h"

namespace kumo {

JobRecorder::JobRecorder(std::unique_ptr<RunRecorder> recorder, const Experiment::Output& output,
                         const std::optional<checkpoint::Manifest>& restored)
    : recorder_(std::move(recorder)), output_(output) {
  if (restored) last_ = HeadlineOf(*restored);
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
  if (const auto headline = epoch.metrics.Headline(epoch.validation)) last_ = headline;
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
    const std::string result = last_ ? "validation " + Described(*last_) : "nothing was evaluated";
    recorder_->RecordDone();
    recorder_->Say("done: " + result + " after " + HumanDuration(status.elapsed_seconds()));
  }
  if (!model.empty()) recorder_->Say("model   " + model);
  if (const auto best = disk.Best(); best.ok()) {
    recorder_->Say("best    " + JoinPath(disk.folder(), best->name()) + " (" +
                   DescribeEvaluation(*best) + ")");
  }
  recorder_->Say("curves  " + output + " (tensorboard --logdir " + output + "; log.jsonl)");
  recorder_->Say("logs    " + JoinPath(output, "logs"));
  if (Status flushed = recorder_->Flush(); !flushed.ok()) LOG(WARNING) << flushed.message();
}

}  // namespace kumo
