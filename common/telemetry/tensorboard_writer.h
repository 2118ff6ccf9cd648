// TensorBoard writer: an event file with scalars, and the run's hyper-parameters for the plugin
// hparams, which shows them beside the curves' last values.
//
// A file is a sequence of TFRecords, each
//   u64    length n of the data, little-endian
//   u32    masked CRC-32C of the length's 8 bytes
//   u8[n]  data: a kumo.tensorboard.Event
//   u32    masked CRC-32C of the data
// (tensorflow/core/lib/io/record_writer.h). The first event names the file's version. The second
// one is a session start with the step from which the file is valid, so that TensorBoard drops
// later steps in the files of an interrupted run.
//
// One thread. Each call returns when the operating system has the record.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
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
  // Creates `directory` if necessary, and in it events.out.tfevents.<time>.<host>.<n> with a new n.
  // wall_time_s: seconds since 1970. first_step: of the scalars to come. Leaves no file if it
  // fails. files is not kept.
  static Result<std::unique_ptr<TensorBoardWriter>> Create(FileSystem& files,
                                                           const std::string& directory,
                                                           std::string_view host,
                                                           double wall_time_s, int64_t first_step);

  const std::string& path() const { return path_; }
  Status Write(double wall_time_s, int64_t step, std::span<const Scalar> scalars);
  Status Write(double wall_time_s, int64_t step, std::initializer_list<Scalar> scalars) {
    return Write(wall_time_s, step, std::span<const Scalar>(scalars.begin(), scalars.size()));
  }
  // Writes a text, which TensorBoard shows as Markdown.
  Status WriteText(double wall_time_s, int64_t step, std::string_view tag, std::string_view text);
  // Writes a PNG. Requires one with a size (PngSizeOf).
  Status WritePicture(double wall_time_s, int64_t step, std::string_view tag, std::string_view png);
  // Readers keep the first set in a run's files.
  Status WriteHyperparameters(double wall_time_s, std::span<const Hyperparameter> hyperparameters);
  // The run has ended.
  Status WriteDone(double wall_time_s);
  // Makes the records durable.
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

struct PngSize {
  uint32_t width = 0;
  uint32_t height = 0;
};
// From the start of a PNG file; none if the bytes do not begin as one.
std::optional<PngSize> PngSizeOf(std::string_view png);

// Whether a file in a run's directory is an event file, by its name.
bool IsEventFile(std::string_view name);

// Removes the event files of earlier runs in a directory, because readers keep the first set of
// hyper-parameters that they find.
Status RemoveEventFiles(FileSystem& files, const std::string& directory);

// The TFRecord of `data`.
std::string FrameRecord(std::string_view data);

}  // namespace kumo
