#include "worker/inference/evaluation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/base/text_table.h"
#include "common/telemetry/figures.h"
#include "models/network.h"
#include "worker/inference/confusion_matrix.h"
#include "worker/inference/stored_model.h"
#include "worker/training/job_memory.h"
#include "worker/training/opened_job.h"
#include "worker/training/trainer.h"

namespace kumo {
namespace {

// Checks that the data are prepared as those that the checkpoint was trained on.
Status CheckData(const StoredModel& model, const std::vector<float>& mean, const Datasets& data) {
  KUMO_RETURN_IF_ERROR(CheckSameClasses(model.manifest, data.train->class_names()));
  const auto& trained = model.manifest.mean_image();
  if (!model.experiment.data.subtract_mean || trained.empty()) return OkStatus();
  if (std::ranges::equal(trained, mean)) return OkStatus();
  return FailedPrecondition("checkpoint " + model.manifest.name() +
                            " was trained with another mean image than " + data.train->name() +
                            " has (data.subtract_mean); evaluate with the training set, and the "
                            "data.train_limit, that it was trained on");
}

std::string TextOf(const std::string& checkpoint, const std::vector<MetricFigure>& figures,
                   int64_t samples) {
  std::string text = checkpoint + ":";
  for (const MetricFigure& one : figures) {
    char value[64];
    std::snprintf(value, sizeof value, " %.6f ", one.value);
    text += " " + ValidationFigure(one.name) + value;
  }
  return text + " (" + std::to_string(samples) + " samples)";
}

// Labels of samples or of their positions, which a field has as int32 or, of a mask, as bytes.
// Those that count nothing become -1.
std::vector<int32_t> LabelsOf(NumberType type, std::span<const std::byte> field, int64_t count,
                              int64_t ignored) {
  std::vector<int32_t> labels(static_cast<size_t>(count));
  if (type == NumberType::kUint8) {
    std::ranges::transform(field.first(labels.size()), labels.begin(),
                           [](std::byte label) { return std::to_integer<int32_t>(label); });
  } else {
    std::memcpy(labels.data(), field.data(), labels.size() * sizeof(int32_t));
  }
  std::ranges::replace_if(
      labels, [&](int32_t label) { return label == ignored; }, -1);
  return labels;
}

Result<ConfusionMatrix> Confusion(const model::Network& network, std::span<const float> weights,
                                  Trainer* trainer) {
  constexpr int kOutput = 0;
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
  const Fields& fields = trainer->datasets().fields();
  const int label = FindField(fields, graph.target().field);
  const int value = graph.outputs.empty() ? -1 : graph.outputs[kOutput].value;
  const int64_t positions = value < 0 ? 0 : graph.values[value].shape.plane();
  const auto has_labels = [&](const Field& field) {
    const bool is_mask = field.kind == FieldKind::kMask && field.type == NumberType::kUint8;
    return (is_mask || field.type == NumberType::kInt32) && !field.list &&
           field.numbers() == positions;
  };
  if (value < 0 || !graph.IsScores(value) || label < 0 || !has_labels(fields[label]) ||
      graph.target().classes > ConfusionMatrix::kMostClasses) {
    return InvalidArgument("--classes: network " + network.name() +
                           " does not give each sample, or each of its positions, one of 2 to " +
                           std::to_string(ConfusionMatrix::kMostClasses) + " classes");
  }
  ConfusionMatrix confusion(static_cast<int>(graph.target().classes), positions);
  const auto take = [&](const Minibatch& minibatch, std::span<const float> scores) {
    confusion.Add(LabelsOf(fields[label].type, minibatch.fields[label], minibatch.size * positions,
                           graph.target().ignored),
                  scores);
  };
  KUMO_RETURN_IF_ERROR(trainer->PredictAll(weights, kOutput, take));
  return confusion;
}

// Calls take(metric, precision of the class) for each precision.
template <typename Take>
void ForEachPrecision(const MetricList& metrics, const DetectionCounts& counts, int32_t number,
                      const Take& take) {
  for (const Metric& metric : metrics.metrics()) {
    const auto formula = MetricList::PrecisionOf(metric);
    if (formula) take(metric, counts.AveragePrecision(number, *formula).value_or(0));
  }
}

// A table with a row for each class with objects and a column for each precision; the means hide
// which class is found badly.
std::string PrecisionsText(const MetricList& metrics, const DetectionCounts& counts,
                           std::span<const std::string> names) {
  constexpr size_t kShownName = 24;
  std::vector<TextColumn> header = {{"class", /*right=*/false}};
  for (const std::string& name : metrics.NamesOfEvaluations()) header.push_back({name});
  std::vector<std::vector<std::string>> rows;
  for (const int32_t number : counts.Classes()) {
    rows.push_back({NameOrNumber(names, number, kShownName)});
    ForEachPrecision(metrics, counts, number, [&](const Metric&, double precision) {
      rows.back().push_back(FigureText(precision));
    });
  }
  return FormatTextTable(header, rows, 0);
}

// The field `classes`: likewise, an object for each class.
void AddPrecisions(const MetricList& metrics, const DetectionCounts& counts,
                   std::span<const std::string> names, JsonFields* fields) {
  JsonArray classes;
  for (const int32_t number : counts.Classes()) {
    JsonFields one;
    one.Add("class", number);
    if (number < std::ssize(names) && !names[number].empty()) one.Add("name", names[number]);
    ForEachPrecision(metrics, counts, number, [&](const Metric& metric, double precision) {
      one.Add(metric.name, precision);
    });
    classes.Add(one);
  }
  fields->Add("classes", classes);
}

}  // namespace

Result<std::string> EvaluateCheckpoint(const ModelName& name, const EvaluationForm& form) {
  KUMO_ASSIGN_OR_RETURN(StoredModel model, OpenStoredModel(name));
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
  KUMO_RETURN_IF_ERROR(CheckSameInputs(model.manifest, model.experiment, model.sets));
  Experiment& experiment = model.experiment;
  if (!model.has_experiment_file) {
    experiment.network.file = "the network of checkpoint " + model.manifest.name();
  }
  KUMO_ASSIGN_OR_RETURN(const JobMemory memory, MemoryOfJob(experiment, network, /*servers=*/1));
  KUMO_RETURN_IF_ERROR(memory.CheckWorkerFits());
  KUMO_ASSIGN_OR_RETURN(OpenedJob job, OpenJob(experiment, network));
  KUMO_RETURN_IF_ERROR(CheckData(model, job.spec.mean_image, job.datasets));
  const SteadyClock clock;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        Trainer::Make(experiment, std::move(job), &clock));
  KUMO_ASSIGN_OR_RETURN(MetricSums sums, trainer->EvaluateAll(model.weights.span()));
  const DetectionCounts detections = form.classes ? sums.detections : DetectionCounts();
  trainer->spec().metrics.Settle(&sums);
  const std::vector<MetricFigure> figures = trainer->spec().metrics.FiguresOf(sums);
  const bool precisions = form.classes && !trainer->spec().metrics.NamesOfEvaluations().empty();
  std::optional<ConfusionMatrix> confusion;
  if (form.classes && !precisions) {
    KUMO_ASSIGN_OR_RETURN(confusion, Confusion(network, model.weights.span(), trainer.get()));
  }
  const std::vector<std::string>& names = trainer->spec().class_names;
  const MetricList& metrics = trainer->spec().metrics;
  if (!form.json) {
    std::string text = TextOf(model.checkpoint, figures, sums.samples);
    if (confusion) text += "\n" + confusion->Text(names);
    if (precisions) text += "\n" + PrecisionsText(metrics, detections, names);
    if (text.ends_with('\n')) text.pop_back();  // the caller ends the line
    return text;
  }
  JsonFields fields;
  fields.Add("checkpoint", model.checkpoint).Add(figure::kSamples, sums.samples);
  for (const MetricFigure& one : figures) fields.Add(ValidationFigure(one.name), one.value);
  if (confusion) confusion->AddTo(&fields, names);
  if (precisions) AddPrecisions(metrics, detections, names, &fields);
  return fields.object();
}

}  // namespace kumo
