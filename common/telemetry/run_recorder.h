// The one place where a job's facts become what a person or a program sees: the bar or the lines,
// the table of the epochs, TensorBoard's curves and the JSONL log.
//
//   <directory>/events.out.tfevents.*   TensorBoard
//   <directory>/log.jsonl               one object per interval ("kind":"progress") and per epoch
//
// Owned by the coordinator's process; one thread. A full disk must not stop the training: a file
// that cannot be written is given up, which the console is told once, and the rest goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "common/status.h"
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
  // Not known yet where the run goes on: what is recorded stays, until GoBack() is called.
  static constexpr int64_t kKeepAll = int64_t{1} << 62;
  int64_t resumed_round = -1;  // goes on after this round; -1: a new run
};

class RunRecorder {
 public:
  // files, clock and console are borrowed for life.
  static Result<std::unique_ptr<RunRecorder>> Open(const RunRecorderSettings& settings,
                                                   FileSystem& files, const Clock* clock,
                                                   Console* console);

  // The job has gone back: what is recorded of rounds after `round` counts no more; -1: nothing.
  void GoBack(int64_t round);
  // Once per interval.
  void Record(const RoundProgress& progress);
  // At the end of each epoch.
  void Record(const EpochResult& result);
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
  // To go on after `round`; -1: a new run.
  Status OpenTensorBoard(int64_t round);
  Status OpenJsonl(int64_t round);
  double WallTime() const;
  void WriteTensorBoard(int64_t step, std::span<const Scalar> scalars);
  void WriteJson(int64_t round, const JsonFields& fields);
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
