// The one place where a job's facts become what a person or a program sees: the bar or the lines,
// the table of the epochs, TensorBoard's curves and the JSONL log.
//
//   <directory>/events.out.tfevents.*   TensorBoard; its steps are samples
//   <directory>/log.jsonl               an object for each of the facts
//
// The curves' points are where the job's plan says, so equal runs have equal curves. How fast a run
// is depends on the moment, and is recorded under names of its own.
//
// Owned by the coordinator's process; one thread. A full disk must not stop the training: a file
// that cannot be written is given up, which the console is told once, and the rest goes on.
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
  std::string directory;   // created if need be
  std::string host;        // for the event file's name
  double wall_time_s = 0;  // seconds since 1970 when it is opened
  bool tensorboard = true;
  bool jsonl = true;
  std::vector<Hyperparameter> hyperparameters;  // for TensorBoard
  // Where the run goes on: after so many rounds and samples; -1: a new run.
  int64_t resumed_round = -1;
  int64_t resumed_samples = -1;
  // A resumed_round that says: nobody knows yet where the run goes on, and what is recorded stays
  // until GoBack() is called.
  static constexpr int64_t kKeepAll = int64_t{1} << 62;
};

// A run that goes on from a checkpoint with other settings.
struct ContinuedRun {
  struct Change {
    std::string setting, then, now;
  };
  int64_t round = 0;    // closed until then
  int64_t samples = 0;  // trained until then
  int epoch = 0;        // that is trained next, counted from 1
  std::vector<Change> changes;
  std::vector<std::string> notes;  // what of the carried state started at zero, in words
};

// A run that begins with weights of another one.
struct StartedRun {
  std::string checkpoint;          // of the other one
  std::vector<std::string> taken;  // tensors
  std::vector<std::string> left;   // those that are initialised as usual, and why
};

class RunRecorder {
 public:
  // files, clock and console are borrowed for life.
  static Result<std::unique_ptr<RunRecorder>> Open(const RunRecorderSettings& settings,
                                                   FileSystem& files, const Clock* clock,
                                                   Console* console);

  // The job has gone back to the end of a round, before which it has trained on so many samples:
  // what is recorded of later ones counts no more; -1: nothing does.
  void GoBack(int64_t round, int64_t samples);
  // Once per interval: shown, and of it recorded how fast the job is.
  void Record(const RoundProgress& progress);
  void Record(const CurvePoint& point);
  // At the end of each evaluated epoch.
  void Record(const EpochResult& result);
  // The job goes on with other settings.
  void Record(const ContinuedRun& run);
  void Record(const StartedRun& run);
  // The job is done.
  void RecordDone();
  // A line for the person only.
  void Say(std::string_view line) { view_.ShowLine(line); }

  // Brings the files to the disk. The first error of any file since the start, or ok.
  Status Flush();

 private:
  RunRecorder(const RunRecorderSettings& settings, FileSystem& files, const Clock* clock,
              Console* console)
      : settings_(settings),
        files_(files),
        clock_(clock),
        start_us_(clock->NowUs()),
        view_(console) {}
  // To go on after so many samples, or rounds; -1: a new run.
  Status OpenTensorBoard(int64_t samples);
  Status OpenJsonl(int64_t round);
  double WallTime() const;
  struct Facts;
  void Write(int64_t round, int64_t samples, const Facts& facts);
  // When `status` is an error: remembers it, tells the person, and gives the file up.
  template <typename Writer>
  void GiveUpOnError(const Status& status, std::unique_ptr<Writer>* writer);

  const RunRecorderSettings settings_;
  FileSystem& files_;
  const Clock* const clock_;
  const TimeUs start_us_;
  ProgressView view_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;  // null: not wanted, or given up
  std::unique_ptr<JsonlWriter> jsonl_;
  Status first_error_;
};

}  // namespace kumo
