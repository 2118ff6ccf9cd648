#include "worker/opened_job.h"

#include <string>
#include <utility>

#include "data/content_hash.h"
#include "data/open_datasets.h"
#include "models/backend/devices.h"
#include "models/network.h"

namespace kumo {
namespace {

DeviceOptions DeviceOf(const Experiment::Network& network) {
  DeviceOptions device;
  device.device = network.device;
  device.threads = network.threads;
  device.precision = network.precision;
  device.tf32 = network.tf32;
  device.deterministic = network.deterministic;
  return device;
}

std::string ExtentsText(int64_t channels, int64_t height, int64_t width) {
  return std::to_string(channels) + "x" + std::to_string(height) + "x" + std::to_string(width);
}

Status CheckDataFits(const std::string& file, const Net& net, const Dataset& data) {
  const Shape input = net.input();
  const SampleShape sample = data.shape();
  if (input.channels != sample.channels || input.height != sample.height ||
      input.width != sample.width) {
    return FailedPrecondition(
        file + " takes images of " + ExtentsText(input.channels, input.height, input.width) + ", " +
        data.name() + " has " + ExtentsText(sample.channels, sample.height, sample.width));
  }
  if (net.classes() < data.classes()) {
    return FailedPrecondition(file + " tells " + std::to_string(net.classes()) +
                              " classes apart, data.classes is " + std::to_string(data.classes()));
  }
  return OkStatus();
}

Result<JobSpec> SpecOf(const Experiment& experiment, const OpenedJob& job) {
  const Dataset& train = *job.datasets.train;
  const Dataset& validation = *job.datasets.validation;
  JobSpec spec;
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(job.net->tensors()));
  spec.train_samples = train.size();
  spec.validation_samples = validation.size();
  KUMO_ASSIGN_OR_RETURN(spec.train.hash, ContentHash(train));
  KUMO_ASSIGN_OR_RETURN(spec.validation.hash, ContentHash(validation));
  spec.train.name = train.name();
  spec.validation.name = validation.name();
  spec.optimiser_slots = SlotsThatPartitionsCarry(experiment, *job.optimiser);
  return spec;
}

}  // namespace

PixelFormula OpenedJob::Pixels(const Experiment& experiment) const {
  return {.scale = static_cast<float>(experiment.data.scale),
          .pad_value = static_cast<uint8_t>(experiment.data.pad_value),
          .mean = datasets.mean};
}

Result<OpenedJob> OpenJob(const Experiment& experiment) {
  OpenedJob job;
  const std::string& file = experiment.network.file;
  KUMO_ASSIGN_OR_RETURN(const model::Network network, LoadNetwork(file));
  KUMO_ASSIGN_OR_RETURN(job.backend, MakeBackend(DeviceOf(experiment.network)));
  KUMO_ASSIGN_OR_RETURN(job.datasets, OpenDatasets(experiment.data));
  KUMO_ASSIGN_OR_RETURN(job.rooms, MinibatchRooms::Of(experiment, job.datasets.train->size(),
                                                      job.datasets.validation->size()));
  KUMO_ASSIGN_OR_RETURN(job.net, Net::Make(network, job.rooms.largest(), job.backend.get()));
  KUMO_RETURN_IF_ERROR(CheckDataFits(file, *job.net, *job.datasets.train));
  KUMO_ASSIGN_OR_RETURN(job.optimiser, MakeOptimiser(experiment.optimiser));
  KUMO_ASSIGN_OR_RETURN(job.spec, SpecOf(experiment, job));
  KUMO_ASSIGN_OR_RETURN(job.schedule, Schedule::Make(experiment.schedule, job.spec.train_samples,
                                                     experiment.job.epochs));
  return job;
}

}  // namespace kumo
