// Run recorder: turns a job's facts into all outputs: progress bar or lines, epoch table,
// TensorBoard curves and JSONL log.
//
//   <directory>/events.out.tfevents.*   TensorBoard; its steps are samples
//   <directory>/log.jsonl               one object per fact
//
// The points of the curves are set by the job's plan, so equal runs have equal curves. Speeds
// depend on the moment and are recorded under names of their own.
//
// Owned by the coordinator's process; one thread. A full disk must not stop the training: a file
// that cannot be written is given up with one message on the console, and the rest continues.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/telemetry/console.h"
#include "common/telemetry/jsonl_writer.h"
#include "common/telemetry/progress.h"
#include "common/telemetry/tensorboard_writer.h"

namespace kumo {

struct RunRecorderSettings {
  std::string directory;   // created if necessary
  std::string host;        // for the event file's name
  double wall_time_s = 0;  // at opening, seconds since 1970
  bool tensorboard = true;
  bool jsonl = true;
  std::vector<Hyperparameter> hyperparameters;  // for TensorBoard
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

class RunRecorder {
 public:
  // files, clock and console must outlive the recorder.
  static Result<std::unique_ptr<RunRecorder>> Open(const RunRecorderSettings& settings,
                                                   FileSystem& files, const Clock* clock,
                                                   Console* console);

  // The job has rolled back to the end of a round with this many trained samples: discards later
  // records; -1: all records.
  void GoBack(int64_t round, int64_t samples);
  // Called once per interval: shows the progress and records the speed.
  void Record(const RoundProgress& progress);
  void Record(const CurvePoint& point);
  // Called at the end of each evaluated epoch.
  void Record(const EpochResult& result);
  // The job resumes with other settings.
  void Record(const ContinuedRun& run);
  void Record(const StartedRun& run);
  // The job is done.
  void RecordDone();
  // Prints a line that is not recorded.
  void Say(std::string_view line) { view_.ShowLine(line); }

  // Makes the files durable. Returns the first error of any file since the start, or ok.
  Status Flush();

 private:
  RunRecorder(const RunRecorderSettings& settings, FileSystem& files, const Clock* clock,
              Console* console)
      : settings_(settings),
        files_(files),
        clock_(clock),
        start_us_(clock->NowUs()),
        view_(console) {}
  // Open the files of a run that resumes after `samples` or `round`; -1: a new run.
  Status OpenTensorBoard(int64_t samples);
  Status OpenJsonl(int64_t round);
  double WallTime() const;
  struct Facts;
  void Write(int64_t round, int64_t samples, const Facts& facts);
  // After an error: remembers it, prints it, and gives the file up.
  template <typename Writer>
  void GiveUpOnError(const Status& status, std::unique_ptr<Writer>* writer);

  const RunRecorderSettings settings_;
  FileSystem& files_;
  const Clock* const clock_;
  const TimeUs start_us_;
  ProgressView view_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;  // null: disabled or given up
  std::unique_ptr<JsonlWriter> jsonl_;
  Status first_error_;
};

}  // namespace kumo
