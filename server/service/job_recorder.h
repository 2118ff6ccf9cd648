// What server 0 tells people and programs of its job: the actions that the curves and the progress
// line want to know of become facts of the run's recorder, and a person is told what happens.
//
// On the other servers there is no recorder, and what only a person would see is not said. Owned by
// the driver, on its loop thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/settings/experiment.h"
#include "common/telemetry/run_recorder.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/disks/disk.h"
#include "server/protocol/actions.h"

namespace kumo {

class JobRecorder {
 public:
  // recorder: null on other servers than 0. restored: the checkpoint that the job goes on from.
  JobRecorder(std::unique_ptr<RunRecorder> recorder, const Experiment::Output& output,
              const std::optional<checkpoint::Manifest>& restored);

  // False on other servers than 0, of which no status of the job is known either.
  bool records() const { return recorder_ != nullptr; }

  void Record(const StartedFromAction& started);
  void Record(const WentBackAction& back);
  void Record(const WentOnAction& on);
  // elapsed_s: of the job, until now.
  void Record(const CurvePointAction& action, double elapsed_s);
  void Record(const EpochEvaluatedAction& epoch, double elapsed_s);

  // Whether the progress line is to be shown: once per output.interval_s.
  bool ProgressIsDue(TimeUs now) const { return records() && now >= next_progress_; }
  // Requires records().
  void ShowProgress(const wire::JobStatus& status, TimeUs now);
  // Whom the server waits for. A person sees what server 0 says, and the others' warnings.
  void SayWhomItWaitsFor(const std::string& waits);
  // A line for the person only.
  void Say(std::string_view line);
  // The last lines that a person sees: the result and where everything is. done: the job is. model:
  // where the last checkpoint is; "" where there is none. Requires records().
  void SayFarewell(bool done, const wire::JobStatus& status, const Disk& disk,
                   const std::string& model);

 private:
  const std::unique_ptr<RunRecorder> recorder_;
  const Experiment::Output output_;
  std::optional<MetricFigure> last_;  // what the last evaluation is told by
  TimeUs next_progress_ = 0;
};

}  // namespace kumo
