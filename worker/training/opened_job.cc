#include "worker/training/opened_job.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <glog/logging.h>

#include "common/job/round_policy.h"
#include "data/content_hash.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"
#include "models/network.h"
#include "worker/training/metric_settings.h"

namespace kumo {

namespace {

Status ConnectData(const Experiment& experiment, const OpenedJob& job) {
  const Dataset& data = *job.datasets.train;
  const std::string& file = experiment.network.file;
  KUMO_RETURN_IF_ERROR(
      BindInputs(experiment.data.reader, job.datasets.fields(), job.datasets.pixels, job.net.get())
          .WithContext(file + ", " + data.name()));
  KUMO_RETURN_IF_ERROR(
      CheckPaddedMasks(experiment.data, job.datasets.fields(), job.net->graph()).WithContext(file));
  const std::string outputs = std::to_string(job.net->classes());
  const std::string classes = std::to_string(data.classes());
  const std::string layer = "layer " + job.net->scores_layer();
  if (job.net->classes() < data.classes()) {
    if (TraitsOf(experiment.data.reader).samples == SampleKind::kTokens) {
      return FailedPrecondition(file + ": the network has " + outputs + " outputs, but " +
                                data.name() + " has " + classes +
                                " different tokens; write vocabulary: vocabulary in the "
                                "input and outputs: vocabulary in " +
                                layer + ", or " + classes + " in both");
    }
    return FailedPrecondition(file + ": the network has " + outputs +
                              " outputs, but data.classes = " + classes + "; give " + layer + " " +
                              classes + " outputs, or set data.classes = " + outputs);
  }
  if (job.net->classes() > data.classes() && data.classes() > 0) {
    LOG(WARNING) << file << ": the network has " << outputs << " outputs, but the data have "
                 << classes << " classes; give " << layer << " " << classes
                 << " outputs, unless more are intended";
  }
  return OkStatus();
}

// "input { channels: 3 height: 32 width: 32 }", or "input { name: "tokens" extents: 64 ... }".
std::string InputOf(const Field& field) {
  std::string text = "input { ";
  if (field.extents.size() == 3) {
    const char* const names[] = {"channels", "height", "width"};
    for (int i = 0; i < 3; ++i) {
      text += std::string(names[i]) + ": " + std::to_string(field.extents[i]) + " ";
    }
    return text + "}";
  }
  text += "name: \"" + field.name + "\" ";
  for (const int64_t extent : field.extents) text += "extents: " + std::to_string(extent) + " ";
  return text + "... }";
}

// Advice if the first input has another shape than the samples; "" if it has not.
std::string HowToFit(DataReader reader, const Fields& fields, const Fields& wanted) {
  const Field& input = wanted.front();
  const int found = FindField(fields, input.name);
  if (found < 0 || Shape(input.extents) == Shape(fields[found].extents)) return "";
  const ReaderTraits traits = TraitsOf(reader);
  std::string settings;
  if (traits.image_files && input.extents.size() == 3) {
    settings = "data.image_size = " + ExtentsText(input.extents) +
               ", with which all images are resized, or ";
  } else if (traits.samples == SampleKind::kTokens) {
    settings = "data.window = " + ExtentsText(input.extents) + ", or ";
  }
  return "set " + settings + InputOf(fields[found]) + " in the network";
}

// The mean image of the first input that has one; a manifest has room for one alone.
std::span<const float> FirstMeanImage(const Net& net, const Datasets& data) {
  const Fields fields = data.fields();
  for (const std::string& input : net.graph().inputs) {
    const int place = FindField(fields, input);
    if (place >= 0 && !data.pixels[place].mean.empty()) return data.pixels[place].mean;
  }
  return {};
}

constexpr int64_t kMostClasses = int64_t{1} << 30;

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
  spec.optimiser_slots = RoundPolicy(experiment).carried().optimiser_slots;
  const std::span<const std::string> names = train.class_names();
  std::span<const float> mean;
  // A mean from data.mean is a setting, which checkpoints record anyway.
  if (experiment.data.subtract_mean) mean = FirstMeanImage(*job.net, job.datasets);
  spec.Describe(NetworkText(network), {names.begin(), names.end()}, mean);
  return spec;
}

}  // namespace

Result<OpenedJob> OpenJob(const Experiment& experiment) {
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(experiment));
  return OpenJob(experiment, network);
}

Result<OpenedJob> OpenJob(const Experiment& experiment, const model::Network& network) {
  OpenedJob job;
  KUMO_ASSIGN_OR_RETURN(job.backend, MakeBackend(experiment.network));
  KUMO_ASSIGN_OR_RETURN(job.datasets, OpenDatasets(experiment.data));
  KUMO_ASSIGN_OR_RETURN(job.rooms, MinibatchRooms::Of(experiment, job.datasets.train->size(),
                                                      job.datasets.validation->size()));
  KUMO_ASSIGN_OR_RETURN(job.net, Net::Make(network, job.rooms.largest(), job.backend.get()));
  KUMO_RETURN_IF_ERROR(CheckMetricSettings(experiment, job.net->metrics(),
                                           job.datasets.validation->size(), experiment.network.file,
                                           "in the loss (docs/networks.md)"));
  KUMO_RETURN_IF_ERROR(ConnectData(experiment, job));
  job.optimiser = MakeOptimiser(experiment.optimiser);
  KUMO_ASSIGN_OR_RETURN(job.spec, SpecOf(experiment, network, job));
  KUMO_ASSIGN_OR_RETURN(job.schedule, Schedule::Make(experiment.schedule, job.spec.train_samples,
                                                     experiment.job.epochs));
  KUMO_RETURN_IF_ERROR(Schedule::Make(experiment.BlockSchedule(), job.spec.train_samples,
                                      experiment.job.epochs, "block_schedule")
                           .status());
  return job;
}

Result<std::string> NoteOfSharedImages(const Datasets& data) {
  if (!data.train->in_memory() || !data.validation->in_memory()) return std::string();
  KUMO_ASSIGN_OR_RETURN(const DataSummary train, Summarise(*data.train));
  KUMO_ASSIGN_OR_RETURN(const DataSummary validation, Summarise(*data.validation));
  return ImagesInBoth(train, validation).Note(data.validation->size());
}

Status CheckPaddedMasks(const Experiment::Data& data, const Fields& fields, const Graph& graph) {
  const bool crops = data.crop_pad > 0, expands = data.expand > 1;
  if (!crops && !expands) return OkStatus();
  for (const Field& field : fields) {
    if (field.kind != FieldKind::kMask) continue;
    const LossNode* const loss = graph.FindLossWithout(field.name, kIgnoredClass);
    if (loss == nullptr) continue;
    const std::string label = std::to_string(kIgnoredClass);
    return FailedPrecondition(
        std::string(crops ? "data.crop_pad" : "data.expand") + " gives field \"" + field.name +
        "\" pixels of no class (" + label + ") outside the picture, but layer " + loss->name +
        " does not ignore them; write " + loss->kind + " { ignored_label: " + label + " } there");
  }
  return OkStatus();
}

Status BindInputs(DataReader reader, const Fields& fields, std::span<const PixelFormula> pixels,
                  Net* net) {
  const Status status = net->Connect(fields, pixels);
  if (status.ok()) return status;
  const Fields wanted = net->takes();
  const int label = FindField(fields, kLabelField);
  const int target = FindField(wanted, kLabelField);
  if (label >= 0 && target >= 0 && fields[label].type != wanted[target].type) {
    const bool numbers = net->classes() == 0;
    return Status(status.code(),
                  status.message() + (numbers ? "; its losses need numbers as labels: set "
                                                "data.reader = ctf and data.classes = 0"
                                              : "; its losses need classes as labels: set "
                                                "data.classes to the number of classes"));
  }
  const std::string advice = HowToFit(reader, fields, wanted);
  return advice.empty() ? status : Status(status.code(), status.message() + "; " + advice);
}

}  // namespace kumo
