#include "worker/training/opened_job.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "data/content_hash.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"
#include "models/network.h"

namespace kumo {

namespace {

Status ConnectData(const Experiment& experiment, const OpenedJob& job) {
  const Dataset& data = *job.datasets.train;
  const std::string& file = experiment.network.file;
  KUMO_RETURN_IF_ERROR(
      BindInputs(experiment.data.reader, job.datasets.fields(), job.datasets.pixels, job.net.get())
          .WithContext(file + ", " + data.name()));
  if (job.net->classes() < data.classes() &&
      TraitsOf(experiment.data.reader).samples == SampleKind::kTokens) {
    const std::string tokens = std::to_string(data.classes());
    return FailedPrecondition(file + ": the network has " + std::to_string(job.net->classes()) +
                              " outputs, but " + data.name() + " has " + tokens +
                              " different tokens; set the vocabulary of the input and the outputs "
                              "of the last layer to " +
                              tokens);
  }
  if (job.net->classes() < data.classes()) {
    const std::string outputs = std::to_string(job.net->classes());
    return FailedPrecondition(file + ": the network has " + outputs +
                              " outputs, but data.classes = " + std::to_string(data.classes()) +
                              "; set data.classes = " + outputs + " or change the last layer");
  }
  return OkStatus();
}

constexpr int64_t kMostClasses = int64_t{1} << 30;

Status CheckMetric(const char* key, const std::string& metric, const Experiment& experiment,
                   const MetricList& metrics) {
  if (metrics.Find(metric) != nullptr) return OkStatus();
  return InvalidArgument(std::string(key) + " = " + metric + ", but the metrics of " +
                         experiment.network.file + " are " + metrics.Names() + "; set " + key +
                         " to one of these metrics, or declare " + metric +
                         " in the loss (docs/networks.md)");
}

Status CheckMetrics(const Experiment& experiment, const MetricList& metrics,
                    int64_t validation_samples) {
  if (const std::string& best = experiment.checkpoint.best; !best.empty()) {
    KUMO_RETURN_IF_ERROR(CheckMetric("checkpoint.best", best, experiment, metrics));
  }
  if (experiment.job.patience == 0) return OkStatus();
  if (validation_samples == 0) {
    return InvalidArgument("job.patience = " + std::to_string(experiment.job.patience) +
                           ", but there is no validation set; give one or set job.patience = 0");
  }
  return CheckMetric("job.patience_metric", experiment.job.patience_metric, experiment, metrics);
}

Result<JobSpec> SpecOf(const Experiment& experiment, const model::Network& network,
                       const OpenedJob& job) {
  const Dataset& train = *job.datasets.train;
  const Dataset& validation = *job.datasets.validation;
  JobSpec spec;
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(job.net->tensors()));
  spec.metrics = job.net->metrics();
  spec.classes = static_cast<int>(std::min<int64_t>(job.net->classes(), kMostClasses));
  spec.train_samples = train.size();
  spec.validation_samples = validation.size();
  KUMO_ASSIGN_OR_RETURN(spec.train.hash, ContentHash(train));
  KUMO_ASSIGN_OR_RETURN(spec.validation.hash, ContentHash(validation));
  spec.train.name = train.name();
  spec.validation.name = validation.name();
  spec.optimiser_slots = SlotsThatPartitionsCarry(experiment);
  const std::span<const std::string> names = train.class_names();
  std::span<const float> mean;
  // A mean from data.mean is a setting, which checkpoints record anyway.
  if (experiment.data.subtract_mean) mean = job.datasets.pixels.mean;
  spec.Describe(NetworkText(network), {names.begin(), names.end()}, mean);
  return spec;
}

}  // namespace

Result<OpenedJob> OpenJob(const Experiment& experiment) {
  KUMO_ASSIGN_OR_RETURN(const model::Network network, LoadNetwork(experiment.network.file));
  return OpenJob(experiment, network);
}

Result<OpenedJob> OpenJob(const Experiment& experiment, const model::Network& network) {
  OpenedJob job;
  KUMO_ASSIGN_OR_RETURN(job.backend, MakeBackend(experiment.network));
  KUMO_ASSIGN_OR_RETURN(job.datasets, OpenDatasets(experiment.data));
  KUMO_ASSIGN_OR_RETURN(job.rooms, MinibatchRooms::Of(experiment, job.datasets.train->size(),
                                                      job.datasets.validation->size()));
  KUMO_ASSIGN_OR_RETURN(job.net, Net::Make(network, job.rooms.largest(), job.backend.get()));
  KUMO_RETURN_IF_ERROR(
      CheckMetrics(experiment, job.net->metrics(), job.datasets.validation->size()));
  KUMO_RETURN_IF_ERROR(ConnectData(experiment, job));
  job.optimiser = MakeOptimiser(experiment.optimiser);
  KUMO_ASSIGN_OR_RETURN(job.spec, SpecOf(experiment, network, job));
  KUMO_ASSIGN_OR_RETURN(job.schedule, Schedule::Make(experiment.schedule, job.spec.train_samples,
                                                     experiment.job.epochs));
  return job;
}

Result<std::string> NoteOfSharedImages(const Datasets& data) {
  if (!data.train->in_memory() || !data.validation->in_memory()) return std::string();
  KUMO_ASSIGN_OR_RETURN(const DataSummary train, Summarise(*data.train));
  KUMO_ASSIGN_OR_RETURN(const DataSummary validation, Summarise(*data.validation));
  return ImagesInBoth(train, validation).Note(data.validation->size());
}

Status BindInputs(DataReader reader, const Fields& fields, const PixelFormula& pixels, Net* net) {
  const Status status = net->Connect(fields, pixels);
  if (status.ok()) return status;
  const Fields wanted = net->takes();
  const int label = FindField(fields, kLabelField);
  if (label >= 0 && fields[label].type != wanted.back().type) {
    const bool numbers = net->classes() == 0;
    return Status(status.code(),
                  status.message() + (numbers ? "; its losses need numbers as labels: set "
                                                "data.reader = ctf and data.classes = 0"
                                              : "; its losses need classes as labels: set "
                                                "data.classes to the number of classes"));
  }
  if (!TraitsOf(reader).image_files) return status;
  const int image = FindField(wanted, kImageField);
  const int found = FindField(fields, kImageField);
  if (image < 0 || found < 0 || wanted[image].extents.size() != 3 ||
      Shape(wanted[image].extents) == Shape(fields[found].extents)) {
    return status;
  }
  return Status(status.code(), status.message() + "; with data.image_size = " +
                                   ExtentsText(wanted[image].extents) +
                                   " all images are resized to fit");
}

}  // namespace kumo
