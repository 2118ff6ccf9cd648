// Run recorder: turns a job's facts into all outputs: progress bar or lines, epoch table,
// TensorBoard curves and JSONL log.
//
//   <directory>/events.out.tfevents.*   TensorBoard; its steps are samples
//   <directory>/log.jsonl               one object per fact
//
// The points of the curves are set by the job's plan, so equal runs have equal curves. Speeds
// depend on the moment and are recorded under names of their own.
//
// Owned by the coordinator's process; one thread. The files are opened when the run begins, so that
// a run that is refused changes no curve. A full disk does not stop the training: records wait in
// memory until the disk takes them (retried_file.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "common/telemetry/console.h"
#include "common/telemetry/jsonl_writer.h"
#include "common/telemetry/progress.h"
#include "common/telemetry/retried_file.h"
#include "common/telemetry/tensorboard_writer.h"

namespace kumo {

struct RunRecorderSettings {
  std::string directory;   // created if necessary
  std::string host;        // for the event file's name
  double wall_time_s = 0;  // at opening, seconds since 1970
  bool tensorboard = true;
  bool jsonl = true;
  // The settings that the result depends on, for TensorBoard and the first line of log.jsonl.
  std::vector<Hyperparameter> hyperparameters;
  // The rounds and samples after which the run resumes; -1: a new run.
  int64_t resumed_round = -1;
  int64_t resumed_samples = -1;
  // Value of resumed_round before the resume point is known: all records stay until GoBack() is
  // called.
  static constexpr int64_t kKeepAll = int64_t{1} << 62;
};

// A run that resumes from a checkpoint with other settings.
struct ContinuedRun {
  struct Change {
    std::string setting, then, now;
  };
  int64_t round = 0;    // closed so far
  int64_t samples = 0;  // trained so far
  int epoch = 0;        // the next one, counted from 1
  std::vector<Change> changes;
  std::vector<std::string> notes;  // carried states that were reset to zero, in words
};

// A run that starts from another run's weights.
struct StartedRun {
  std::string checkpoint;          // of the other run
  std::vector<std::string> taken;  // tensors
  std::vector<std::string> left;   // tensors that are initialised as usual, with reasons
};

// Picture of a detector's objects in some validation samples.
struct EvaluationPicture {
  int64_t round = 0;    // closed so far
  int64_t samples = 0;  // trained so far
  std::string png;
};

// Whether a file in a run's directory is one of the recorder's, by its name.
bool IsCurveFile(std::string_view name);

class RunRecorder {
 public:
  // files, clock and console must outlive the recorder.
  RunRecorder(const RunRecorderSettings& settings, FileSystem& files, const Clock* clock,
              Console* console);

  // The run begins: opens the files, and writes what was recorded before. metrics: the job's, for
  // the first line of log.jsonl. Returns an error that no retry can mend. Without effect in a run
  // that has begun.
  Status Begin(const MetricList& metrics);
  // The job has rolled back to the end of a round with this many trained samples: discards later
  // records; -1: all records.
  void GoBack(int64_t round, int64_t samples);
  // Called once per interval: shows the progress and records the speed.
  void Record(const RoundProgress& progress);
  void Record(const CurvePoint& point);
  // Called at the end of each evaluated epoch.
  void Record(const EpochResult& result);
  // For TensorBoard. Without effect if it is no PNG, or while records wait for a disk.
  void Record(const EvaluationPicture& picture);
  // The job resumes with other settings.
  void Record(const ContinuedRun& run);
  void Record(const StartedRun& run);
  // The job is done.
  void RecordDone();
  // Prints a line that is not recorded.
  void Say(std::string_view line) { view_.ShowLine(line); }

  // Why records wait for a disk now; ok: none does.
  const Status& failure() const;
  // Makes the files durable. The error says how many records are missing.
  Status Flush();

 private:
  Result<std::unique_ptr<TensorBoardWriter>> OpenTensorBoard(int64_t samples);
  Result<std::unique_ptr<JsonlWriter>> OpenJsonl(int64_t round);
  double WallTime() const;
  struct Facts;
  void Write(int64_t round, int64_t samples, const Facts& facts);

  const RunRecorderSettings settings_;
  FileSystem& files_;
  const Clock* const clock_;
  const TimeUs start_us_;
  ProgressView view_;
  bool begun_ = false;
  MetricList metrics_;
  std::optional<RetriedFile<TensorBoardWriter>> tensorboard_;  // none: disabled
  std::optional<RetriedFile<JsonlWriter>> jsonl_;
};

}  // namespace kumo
