#include "worker/inference/evaluation.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/telemetry/figures.h"
#include "worker/inference/stored_model.h"
#include "worker/training/job_memory.h"
#include "worker/training/opened_job.h"
#include "worker/training/trainer.h"

namespace kumo {
namespace {

// Checks that the data are prepared as those that the checkpoint was trained on.
Status CheckData(const StoredModel& model, const Datasets& data) {
  KUMO_RETURN_IF_ERROR(CheckSameClasses(model.manifest, data.train->class_names()));
  const auto& trained = model.manifest.mean_image();
  const std::vector<float>& mean = data.pixels.mean;
  if (!model.experiment.data.subtract_mean || trained.empty()) return OkStatus();
  if (std::ranges::equal(trained, mean)) return OkStatus();
  return FailedPrecondition("checkpoint " + model.manifest.name() +
                            " was trained with another mean image than that of " +
                            data.train->name() +
                            " (data.subtract_mean); evaluate with the training set, and the "
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

}  // namespace

Result<std::string> EvaluateCheckpoint(const ModelName& name, bool json) {
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
  KUMO_RETURN_IF_ERROR(CheckData(model, job.datasets));
  const SteadyClock clock;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        Trainer::Make(experiment, std::move(job), &clock));
  KUMO_ASSIGN_OR_RETURN(const MetricSums sums, trainer->EvaluateAll(model.weights.span()));
  const std::vector<MetricFigure> figures = trainer->spec().metrics.FiguresOf(sums);
  if (!json) return TextOf(model.checkpoint, figures, sums.samples);
  JsonFields fields;
  fields.Add("checkpoint", model.checkpoint).Add(figure::kSamples, sums.samples);
  for (const MetricFigure& one : figures) fields.Add(ValidationFigure(one.name), one.value);
  return fields.object();
}

}  // namespace kumo
