#include "common/telemetry/run_recorder.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "common/telemetry/figures.h"

namespace kumo {

namespace {

constexpr std::string_view kLog = "log.jsonl";

}  // namespace

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

bool IsCurveFile(std::string_view name) { return name == kLog || IsEventFile(name); }

RunRecorder::RunRecorder(const RunRecorderSettings& settings, FileSystem& files, const Clock* clock,
                         Console* console)
    : settings_(settings), files_(files), clock_(clock), start_us_(clock->NowUs()), view_(console) {
  const auto say = [this](const std::string& line) { view_.ShowLine(line); };
  if (settings.tensorboard) {
    tensorboard_.emplace(
        "the TensorBoard curves", settings.resumed_samples, clock,
        [this](int64_t samples) { return OpenTensorBoard(samples); }, say);
  }
  if (settings.jsonl) {
    jsonl_.emplace(
        std::string(kLog), settings.resumed_round, clock,
        [this](int64_t round) { return OpenJsonl(round); }, say);
  }
}

Status RunRecorder::Begin(const MetricList& metrics) {
  if (begun_) return OkStatus();
  begun_ = true;
  metrics_ = metrics;
  KUMO_RETURN_IF_ERROR(files_.CreateDirectories(settings_.directory));
  if (tensorboard_) KUMO_RETURN_IF_ERROR(tensorboard_->Begin());
  return jsonl_ ? jsonl_->Begin() : OkStatus();
}

Result<std::unique_ptr<TensorBoardWriter>> RunRecorder::OpenTensorBoard(int64_t samples) {
  if (samples < 0) KUMO_RETURN_IF_ERROR(RemoveEventFiles(files_, settings_.directory));
  const int64_t first_step = std::max<int64_t>(samples, -1) + 1;
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<TensorBoardWriter> writer,
                        TensorBoardWriter::Create(files_, settings_.directory, settings_.host,
                                                  WallTime(), first_step));
  const Status status = writer->WriteHyperparameters(WallTime(), settings_.hyperparameters);
  if (status.ok()) return writer;
  (void)files_.RemoveFile(writer->path());  // the earlier error is the one to report
  return status;
}

Result<std::unique_ptr<JsonlWriter>> RunRecorder::OpenJsonl(int64_t round) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<JsonlWriter> writer,
                        JsonlWriter::Open(files_, JoinPath(settings_.directory, kLog), round));
  if (round >= 0 || settings_.hyperparameters.empty()) return writer;
  JsonFields settings;
  for (const Hyperparameter& one : settings_.hyperparameters) {
    std::visit([&](const auto& value) { settings.Add(one.name, value); }, one.value);
  }
  JsonFields fields;
  fields.Add("kind", "settings").Add("settings", settings);
  JsonArray of_metrics;
  for (const Metric& one : metrics_.metrics()) {
    of_metrics.Add(JsonFields().Add("name", one.name).Add("more_is_better", one.more_is_better));
  }
  if (!metrics_.metrics().empty()) fields.Add("metrics", of_metrics);
  fields.Add("wall_time", WallTime());
  KUMO_RETURN_IF_ERROR(writer->Write(0, fields));
  return writer;
}

void RunRecorder::GoBack(int64_t round, int64_t samples) {
  if (tensorboard_) tensorboard_->GoBack(samples);
  if (jsonl_) jsonl_->GoBack(round);
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
  for (const MetricFigure& one : result.classes) {
    facts.AddCurve("", ValidationFigure(one.name), one.value);
  }
  facts.fields.Add(figure::kElapsedTime, result.elapsed_seconds);
  Write(result.round, result.samples, facts);
}

void RunRecorder::Record(const EvaluationPicture& picture) {
  // Pictures are too large to wait for a disk.
  if (!tensorboard_ || !tensorboard_->failure().ok() || !PngSizeOf(picture.png)) return;
  tensorboard_->Write(picture.samples, [time = WallTime(), picture](TensorBoardWriter* writer) {
    return writer->WritePicture(time, picture.samples, "validation/objects", picture.png);
  });
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
  tensorboard_->Write(run.samples,
                      [time = WallTime(), samples = run.samples, text](TensorBoardWriter* writer) {
                        return writer->WriteText(time, samples, "settings/changed", text);
                      });
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
  if (!tensorboard_) return;
  tensorboard_->WriteAtEnd(
      [time = WallTime()](TensorBoardWriter* writer) { return writer->WriteDone(time); });
}

void RunRecorder::Write(int64_t round, int64_t samples, const Facts& facts) {
  const double wall_time = WallTime();
  if (tensorboard_) {
    tensorboard_->Write(samples,
                        [wall_time, samples, curves = facts.curves](TensorBoardWriter* writer) {
                          std::vector<Scalar> scalars;
                          for (const auto& [tag, value] : curves) scalars.push_back({tag, value});
                          return writer->Write(wall_time, samples, scalars);
                        });
  }
  if (jsonl_) {
    JsonFields fields = facts.fields;
    fields.Add("wall_time", wall_time);
    jsonl_->Write(round,
                  [round, fields](JsonlWriter* writer) { return writer->Write(round, fields); });
  }
}

const Status& RunRecorder::failure() const {
  static const Status& ok = *new Status();
  if (tensorboard_ && !tensorboard_->failure().ok()) return tensorboard_->failure();
  return jsonl_ ? jsonl_->failure() : ok;
}

Status RunRecorder::Flush() {
  Status first;
  if (tensorboard_) first = tensorboard_->Flush();
  const Status second = jsonl_ ? jsonl_->Flush() : OkStatus();
  return first.ok() ? second : first;
}

}  // namespace kumo
