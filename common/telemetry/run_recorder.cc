#include "common/telemetry/run_recorder.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/telemetry/figures.h"

namespace kumo {

// A fact to record: a line of log.jsonl, and the scalars that TensorBoard draws of it.
struct RunRecorder::Facts {
  JsonFields fields;
  std::vector<std::pair<std::string, double>> curves;

  template <typename T>
  void AddCurve(std::string_view group, std::string_view figure, const std::optional<T>& value) {
    fields.Add(figure, value);
    if (!value) return;
    curves.emplace_back(std::string(group) + std::string(figure), static_cast<double>(*value));
  }
  template <typename T>
  void AddCurve(std::string_view group, std::string_view figure, const T& value) {
    AddCurve(group, figure, std::optional<T>(value));
  }
};

Result<std::unique_ptr<RunRecorder>> RunRecorder::Open(const RunRecorderSettings& settings,
                                                       FileSystem& files, const Clock* clock,
                                                       Console* console) {
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(settings.directory));
  std::unique_ptr<RunRecorder> recorder(new RunRecorder(settings, files, clock, console));
  if (settings.tensorboard) {
    KUMO_RETURN_IF_ERROR(recorder->OpenTensorBoard(settings.resumed_samples));
  }
  if (settings.jsonl) KUMO_RETURN_IF_ERROR(recorder->OpenJsonl(settings.resumed_round));
  return recorder;
}

Status RunRecorder::OpenTensorBoard(int64_t samples) {
  if (samples < 0) KUMO_RETURN_IF_ERROR(RemoveEventFiles(files_, settings_.directory));
  const int64_t first_step = std::max<int64_t>(samples, -1) + 1;
  KUMO_ASSIGN_OR_RETURN(tensorboard_,
                        TensorBoardWriter::Create(files_, settings_.directory, settings_.host,
                                                  WallTime(), first_step));
  return tensorboard_->WriteHyperparameters(WallTime(), settings_.hyperparameters);
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
  view_.ShowLine("warning: " + status.message() + "; the training continues without this file");
  writer->reset();
}

void RunRecorder::GoBack(int64_t round, int64_t samples) {
  // A file that was given up stays closed.
  if (tensorboard_) GiveUpOnError(OpenTensorBoard(samples), &tensorboard_);
  if (jsonl_) GiveUpOnError(OpenJsonl(round), &jsonl_);
}

double RunRecorder::WallTime() const {
  return settings_.wall_time_s + static_cast<double>(clock_->NowUs() - start_us_) / 1e6;
}

void RunRecorder::Record(const RoundProgress& progress) {
  view_.Show(progress);
  Facts facts;
  facts.fields.Add("kind", "progress");
  facts.fields.Add(figure::kRounds, progress.rounds);
  facts.fields.Add(figure::kSamples, progress.samples);
  facts.fields.Add(figure::kEpoch, progress.epoch);
  facts.AddCurve("time/", figure::kSamplesPerSecond, progress.samples_per_second);
  facts.AddCurve("time/", figure::kCompute, progress.compute_ms);
  facts.AddCurve("time/", figure::kWait, progress.wait_ms);
  facts.AddCurve("time/", figure::kNetwork, progress.network_ms);
  facts.AddCurve("time/", figure::kBytesSent, progress.bytes_sent);
  facts.AddCurve("time/", figure::kBytesReceived, progress.bytes_received);
  facts.AddCurve("time/", figure::kWorkers, progress.workers);
  facts.fields.Add(figure::kSlowest, progress.slowest);
  JsonArray silent;
  for (const RoundProgress::Silent& one : progress.silent) silent.Add(one.worker);
  facts.fields.Add(figure::kSilent, silent);
  facts.fields.Add(figure::kElapsedTime, progress.elapsed_seconds);
  Write(progress.round, progress.samples, facts);
}

void RunRecorder::Record(const CurvePoint& point) {
  Facts facts;
  facts.fields.Add("kind", "point");
  facts.fields.Add(figure::kSamples, point.samples);
  facts.fields.Add(figure::kEpoch, point.epoch);
  for (const MetricFigure& one : point.figures) facts.AddCurve("", MainFigure(one.name), one.value);
  facts.AddCurve("", figure::kLearningRate, point.learning_rate);
  facts.fields.Add(figure::kElapsedTime, point.elapsed_seconds);
  Write(point.round, point.samples, facts);
}

void RunRecorder::Record(const EpochResult& result) {
  view_.Show(result);
  Facts facts;
  facts.fields.Add("kind", "epoch");
  facts.fields.Add(figure::kSamples, result.samples);
  facts.fields.Add(figure::kEpoch, result.epoch);
  for (const MetricFigure& one : result.figures) {
    facts.AddCurve("epoch/", MainFigure(one.name), one.value);
  }
  for (const MetricFigure& one : result.validation) {
    facts.AddCurve("", ValidationFigure(one.name), one.value);
  }
  facts.fields.Add(figure::kElapsedTime, result.elapsed_seconds);
  Write(result.round, result.samples, facts);
}

void RunRecorder::Record(const ContinuedRun& run) {
  Facts facts;
  facts.fields.Add("kind", "continued");
  facts.fields.Add(figure::kSamples, run.samples);
  facts.fields.Add(figure::kEpoch, run.epoch);
  JsonFields changes;
  std::string text = "From round " + std::to_string(run.round) + ", epoch " +
                     std::to_string(run.epoch) + ", on:\n\n";
  for (const ContinuedRun::Change& change : run.changes) {
    JsonArray values;
    values.Add(change.then);
    values.Add(change.now);
    changes.Add(change.setting, values);
    text += "- `" + change.setting + "`: " + change.then + " -> " + change.now + "\n";
  }
  JsonArray notes;
  for (const std::string& note : run.notes) {
    notes.Add(note);
    text += "- " + note + "\n";
  }
  facts.fields.Add("changes", changes);
  facts.fields.Add("notes", notes);
  Write(run.round, run.samples, facts);
  if (!tensorboard_) return;
  GiveUpOnError(tensorboard_->WriteText(WallTime(), run.samples, "settings/changed", text),
                &tensorboard_);
}

void RunRecorder::Record(const StartedRun& run) {
  const auto array = [](const std::vector<std::string>& texts) {
    JsonArray items;
    for (const std::string& text : texts) items.Add(text);
    return items;
  };
  Facts facts;
  facts.fields.Add("kind", "started_from");
  facts.fields.Add("checkpoint", run.checkpoint);
  facts.fields.Add("taken", array(run.taken));
  facts.fields.Add("left", array(run.left));
  Write(0, 0, facts);
}

void RunRecorder::RecordDone() {
  if (tensorboard_) GiveUpOnError(tensorboard_->WriteDone(WallTime()), &tensorboard_);
}

void RunRecorder::Write(int64_t round, int64_t samples, const Facts& facts) {
  const double wall_time = WallTime();
  if (tensorboard_) {
    std::vector<Scalar> scalars;
    for (const auto& [tag, value] : facts.curves) scalars.push_back({tag, value});
    GiveUpOnError(tensorboard_->Write(wall_time, samples, scalars), &tensorboard_);
  }
  if (jsonl_) {
    JsonFields fields = facts.fields;
    fields.Add("wall_time", wall_time);
    GiveUpOnError(jsonl_->Write(round, fields), &jsonl_);
  }
}

Status RunRecorder::Flush() {
  if (tensorboard_) GiveUpOnError(tensorboard_->Flush(), &tensorboard_);
  if (jsonl_) GiveUpOnError(jsonl_->Flush(), &jsonl_);
  return first_error_;
}

}  // namespace kumo
