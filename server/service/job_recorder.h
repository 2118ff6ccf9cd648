// Job recorder: server 0's output about its job. It turns the machines' facts (server/protocol/
// actions.h) into records of the run recorder (curves, logs), and prints lines for the user.
//
// Other servers have no run recorder; lines for the user are not printed there. Owned by the
// driver, on its loop thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/settings/experiment.h"
#include "common/telemetry/progress.h"
#include "common/telemetry/run_recorder.h"
#include "proto/checkpoint.pb.h"
#include "proto/wire.pb.h"
#include "server/disks/disk.h"
#include "server/protocol/actions.h"

namespace kumo {

// A job's status in the form of the progress line. Pure; thread-safe.
RoundProgress ProgressOf(const wire::JobStatus& status);

class JobRecorder {
 public:
  // recorder: null on servers other than 0. restored: the checkpoint that the job goes on from.
  JobRecorder(std::unique_ptr<RunRecorder> recorder, const Experiment::Output& output,
              const std::optional<checkpoint::Manifest>& restored);

  // False on servers other than 0, which do not know the job's status either.
  bool records() const { return recorder_ != nullptr; }

  // The run begins: opens the curves, and says what was moved to the earlier runs. metrics: the
  // job's.
  Status Begin(const SetAside& aside, const MetricList& metrics);
  void Record(const StartedFromAction& started);
  void Record(const WentBackAction& back);
  void Record(const WentOnAction& on);
  // elapsed_s: seconds of the job until now.
  void Record(const CurvePointAction& action, double elapsed_s);
  void Record(const EpochEvaluatedAction& epoch, double elapsed_s);
  void Record(const EvaluationPictureAction& picture);

  // Why curves cannot be written, if that has changed since the last call; "": they can be again.
  std::optional<std::string> NewFailure();

  // Whether the progress line is due: once per output.interval_s.
  bool ProgressIsDue(TimeUs now) const { return records() && now >= next_progress_; }
  // Requires records().
  void ShowProgress(const wire::JobStatus& status, TimeUs now);
  // Says which processes the server waits for: on server 0 a line for the user, on others a warning
  // in the log.
  void SayWaitsFor(const std::string& waits);
  // Says when checkpoints cannot be saved any more, and when they can again.
  void Say(const SavingHealthAction& health);
  // Prints a line for the user; it is not logged.
  void Say(std::string_view line);
  // Prints the last lines: the result, and the paths of all output. done: the job is done. model:
  // path of the last checkpoint; "" if there is none. Requires records().
  void SayEnd(bool done, const wire::JobStatus& status, const Disk& disk, const std::string& model);

 private:
  const std::unique_ptr<RunRecorder> recorder_;
  const Experiment::Output output_;
  std::optional<MetricFigure> last_;  // headline figure of the last evaluation
  TimeUs next_progress_ = 0;
  std::string trouble_;  // of the last evaluated epoch; "": none
  std::string failure_;  // as NewFailure has told last
  std::string earlier_;  // folder of the results that the run does not go on from; "": none
};

}  // namespace kumo
