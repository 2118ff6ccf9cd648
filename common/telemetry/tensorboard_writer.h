// Curves for TensorBoard: an event file with scalars, and the run's hyperparameters for its plugin
// hparams, which shows them beside the curves' last values.
//
// A file is a sequence of TFRecords, each
//   u64    length n of the data, little-endian
//   u32    masked CRC-32C of the length's 8 bytes
//   u8[n]  data: a kumo.tensorboard.Event
//   u32    masked CRC-32C of the data
// (tensorflow/core/lib/io/record_writer.h). The first event names the file's version. The second
// says from which step on this file is right, so that TensorBoard forgets what the files of an
// interrupted run say about later steps.
//
// One thread. Every record is in the system's hands when a call returns.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo::tensorboard {
class Event;
class HParamsPluginData;
}  // namespace kumo::tensorboard

namespace kumo {

struct Scalar {
  std::string_view tag;  // "train/loss"
  double value = 0;
};

struct Hyperparameter {
  std::string name;
  std::variant<bool, double, std::string> value;
};

class TensorBoardWriter {
 public:
  // Creates `directory` if need be and in it events.out.tfevents.<time>.<host>.<n>, with an n that
  // makes it new. wall_time_s: seconds since 1970. first_step: of the scalars to come. files:
  // borrowed during the call.
  static Result<std::unique_ptr<TensorBoardWriter>> Create(FileSystem& files,
                                                           const std::string& directory,
                                                           std::string_view host,
                                                           double wall_time_s, int64_t first_step);

  const std::string& path() const { return path_; }
  Status Write(double wall_time_s, int64_t step, std::span<const Scalar> scalars);
  Status Write(double wall_time_s, int64_t step, std::initializer_list<Scalar> scalars) {
    return Write(wall_time_s, step, std::span<const Scalar>(scalars.begin(), scalars.size()));
  }
  // A text, which TensorBoard shows as Markdown.
  Status WriteText(double wall_time_s, int64_t step, std::string_view tag, std::string_view text);
  // Readers keep the first that a run's files say.
  Status WriteHyperparameters(double wall_time_s, std::span<const Hyperparameter> hyperparameters);
  // The run has come to its end.
  Status WriteDone(double wall_time_s);
  // To the disk.
  Status Flush() { return file_->Sync(); }

 private:
  TensorBoardWriter(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status WriteEvent(const tensorboard::Event& event);
  Status WriteHParams(double wall_time_s, const char* tag,
                      const tensorboard::HParamsPluginData& data);

  const std::string path_;
  std::unique_ptr<WritableFile> file_;
};

// Removes the event files of earlier runs in a directory: of hyperparameters readers keep the first
// that any file there says.
Status RemoveEventFiles(FileSystem& files, const std::string& directory);

// The TFRecord of `data`.
std::string FrameRecord(std::string_view data);

}  // namespace kumo
