#include "common/telemetry/run_recorder.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace kumo {

Result<std::unique_ptr<RunRecorder>> RunRecorder::Open(const RunRecorderSettings& settings,
                                                       FileSystem& files, const Clock* clock,
                                                       Console* console) {
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(settings.directory));
  std::unique_ptr<RunRecorder> recorder(new RunRecorder(settings, files, clock, console));
  if (settings.tensorboard) {
    KUMO_RETURN_IF_ERROR(recorder->OpenTensorBoard(settings.resumed_round));
  }
  if (settings.jsonl) KUMO_RETURN_IF_ERROR(recorder->OpenJsonl(settings.resumed_round));
  return recorder;
}

Status RunRecorder::OpenTensorBoard(int64_t round) {
  const int64_t first_step = std::max<int64_t>(round, -1) + 1;
  KUMO_ASSIGN_OR_RETURN(tensorboard_,
                        TensorBoardWriter::Create(files_, settings_.directory, settings_.host,
                                                  WallTime(), first_step));
  return OkStatus();
}

Status RunRecorder::OpenJsonl(int64_t round) {
  const std::string path = JoinPath(settings_.directory, "log.jsonl");
  KUMO_ASSIGN_OR_RETURN(jsonl_, JsonlWriter::Open(files_, path, round));
  return OkStatus();
}

template <typename Writer>
void RunRecorder::GiveUpOnError(const Status& status, std::unique_ptr<Writer>* writer) {
  if (status.ok()) return;
  if (first_error_.ok()) first_error_ = status;
  view_.ShowLine("warning: " + status.message() + "; the training goes on without this file");
  writer->reset();
}

void RunRecorder::GoBack(int64_t round) {
  // What was given up stays so.
  if (tensorboard_) GiveUpOnError(OpenTensorBoard(round), &tensorboard_);
  if (jsonl_) GiveUpOnError(OpenJsonl(round), &jsonl_);
}

double RunRecorder::WallTime() const {
  return settings_.wall_time_s + static_cast<double>(clock_->NowUs() - start_us_) / 1e6;
}

void RunRecorder::Record(const RoundProgress& progress) {
  view_.Show(progress);
  const std::vector<Scalar> scalars = {
      {"train/loss", progress.loss},
      {"train/accuracy", progress.accuracy},
      {"train/learning_rate", progress.learning_rate},
      {"speed/samples_per_second", progress.samples_per_second},
      {"time/compute_ms", progress.compute_ms},
      {"time/wait_ms", progress.wait_ms},
      {"time/network_ms", progress.network_ms},
      {"traffic/bytes_sent", static_cast<double>(progress.bytes_sent)},
      {"traffic/bytes_received", static_cast<double>(progress.bytes_received)},
      {"cluster/workers", static_cast<double>(progress.workers)},
  };
  WriteTensorBoard(progress.round, scalars);
  JsonFields fields;
  fields.Add("kind", "progress")
      .Add("rounds", progress.rounds)
      .Add("epoch", progress.epoch)
      .Add("loss", progress.loss)
      .Add("accuracy", progress.accuracy)
      .Add("learning_rate", progress.learning_rate)
      .Add("samples_per_second", progress.samples_per_second)
      .Add("compute_ms", progress.compute_ms)
      .Add("wait_ms", progress.wait_ms)
      .Add("network_ms", progress.network_ms)
      .Add("bytes_sent", progress.bytes_sent)
      .Add("bytes_received", progress.bytes_received)
      .Add("workers", progress.workers)
      .Add("slowest", progress.slowest)
      .Add("elapsed_seconds", progress.elapsed_seconds);
  WriteJson(progress.round, fields);
}

void RunRecorder::Record(const EpochResult& result) {
  view_.Show(result);
  std::vector<Scalar> scalars = {{"epoch/loss", result.loss}, {"epoch/accuracy", result.accuracy}};
  JsonFields fields;
  fields.Add("kind", "epoch")
      .Add("epoch", result.epoch)
      .Add("main/loss", result.loss)
      .Add("main/accuracy", result.accuracy);
  const auto add_if_there = [&](std::string_view tag, std::string_view key,
                                const std::optional<double>& value) {
    if (!value) {
      fields.AddNull(key);
      return;
    }
    scalars.push_back({tag, *value});
    fields.Add(key, *value);
  };
  add_if_there("validation/loss", "validation/main/loss", result.validation_loss);
  add_if_there("validation/accuracy", "validation/main/accuracy", result.validation_accuracy);
  fields.Add("elapsed_time", result.elapsed_seconds);
  WriteTensorBoard(result.round, scalars);
  WriteJson(result.round, fields);
}

void RunRecorder::WriteTensorBoard(int64_t step, std::span<const Scalar> scalars) {
  if (!tensorboard_) return;
  GiveUpOnError(tensorboard_->Write(WallTime(), step, scalars), &tensorboard_);
}

void RunRecorder::WriteJson(int64_t round, const JsonFields& fields) {
  if (!jsonl_) return;
  JsonFields with_time = fields;
  with_time.Add("wall_time", WallTime());
  GiveUpOnError(jsonl_->Write(round, with_time), &jsonl_);
}

Status RunRecorder::Flush() {
  if (tensorboard_) GiveUpOnError(tensorboard_->Flush(), &tensorboard_);
  if (jsonl_) GiveUpOnError(jsonl_->Flush(), &jsonl_);
  return first_error_;
}

}  // namespace kumo
