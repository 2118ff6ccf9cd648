#include "worker/inference/stored_model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/source_folder.h"
#include "common/checkpoint/tensor_list.h"
#include "common/settings/experiment_reader.h"
#include "common/settings/parser.h"
#include "common/settings/setting_changes.h"
#include "data/open_datasets.h"
#include "models/network.h"
#include "worker/inference/trained_as.h"
#include "worker/training/stored_weights.h"

namespace kumo {
namespace {

// The settings that the checkpoint says, and over them those of the command line.
Result<Experiment> ExperimentOf(const checkpoint::Manifest& manifest, const ModelName& name) {
  const OptionTable table;
  LoadedExperiment loaded;
  KUMO_ASSIGN_OR_RETURN(loaded.experiment, ExperimentOfText(manifest.experiment_text()));
  ExperimentReader reader(&table, &name.variables, &loaded);
  reader.ReadCommandLine(name.sets);
  reader.ResolvePaths();
  if (!loaded.problems.empty()) return InvalidArgument(loaded.problems.front());
  Experiment::Data& data = loaded.experiment.data;
  if (data.directory.empty()) data.directory = ValueOf(name.variables, "KUMO_DATA");
  return std::move(loaded.experiment);
}

Result<ParameterLayout> LayoutFor(const StoredModel& model) {
  if (HasTensors(model.manifest)) return LayoutOf(model.manifest);
  if (!model.has_experiment_file) {
    return FailedPrecondition(
        "checkpoint " + model.checkpoint +
        " was written by release 0.1, which did not say what its tensors "
        "are; name its experiment file, and the checkpoint with --checkpoint");
  }
  KUMO_ASSIGN_OR_RETURN(const model::Network network, LoadNetwork(model.experiment.network.file));
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
  return ParameterLayout::Make(graph.tensors());
}

}  // namespace

Result<StoredModel> OpenStoredModel(const ModelName& name) {
  StoredModel model;
  PosixFileSystem files;
  std::error_code error;
  model.has_experiment_file = !std::filesystem::is_directory(name.file, error);
  if (model.has_experiment_file) {
    KUMO_ASSIGN_OR_RETURN(model.experiment, ParseExperiment(name.file, name.sets, name.variables));
  }
  KUMO_ASSIGN_OR_RETURN(
      const CheckpointFolder folder,
      FindCheckpointAt(files, name.checkpoint.empty() ? name.file : name.checkpoint));
  model.checkpoint = folder.path();
  model.sets = name.sets;
  KUMO_ASSIGN_OR_RETURN(model.manifest, ReadManifest(files, folder.parent, folder.name));
  if (!model.has_experiment_file) {
    KUMO_ASSIGN_OR_RETURN(model.experiment, ExperimentOf(model.manifest, name));
  }
  KUMO_ASSIGN_OR_RETURN(model.layout, LayoutFor(model));
  KUMO_ASSIGN_OR_RETURN(model.weights, LoadStoredWeights(model.checkpoint, model.layout));
  return model;
}

Result<model::Network> NetworkOf(const StoredModel& model) {
  const std::string& said = model.manifest.network();
  if (!model.has_experiment_file && said.empty()) {
    return FailedPrecondition("checkpoint " + model.checkpoint +
                              " does not say what its network is (an older release wrote it, or "
                              "its file is long): name its experiment file, and the checkpoint "
                              "with --checkpoint");
  }
  Result<model::Network> network =
      model.has_experiment_file
          ? LoadNetwork(model.experiment.network.file)
          : ParseNetwork(said, "the network of checkpoint " + model.checkpoint);
  if (!network.ok()) return network.status();
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(*network));
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Make(graph.tensors()));
  if (layout.fingerprint() == model.layout.fingerprint()) {
    KUMO_RETURN_IF_ERROR(CheckSameNetwork(model.manifest, NetworkText(*network), model.sets));
    return network;
  }
  return FailedPrecondition(
      "checkpoint " + model.checkpoint + " holds the weights of another network than " +
      model.experiment.network.file + ": " + layout.FirstDifference(model.layout));
}

Result<ModelData> DataOf(const StoredModel& model) {
  KUMO_RETURN_IF_ERROR(CheckSameInputs(model.manifest, model.experiment, model.sets));
  ModelData data;
  const Experiment::Data& settings = model.experiment.data;
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
  const Fields first = {{graph.inputs[0], NumberType::kUint8, graph.values[0].shape.extents()}};
  KUMO_ASSIGN_OR_RETURN(data.pixels, PixelFormulaFor(settings, first, "network " + network.name()));
  const checkpoint::Manifest& manifest = model.manifest;
  data.class_names = {manifest.class_names().begin(), manifest.class_names().end()};
  const bool is_said = !manifest.network().empty() || !data.class_names.empty();
  const bool names_missing = !is_said && model.has_experiment_file;
  if (settings.subtract_mean && manifest.mean_image_size() == first[0].numbers()) {
    data.pixels.mean = {manifest.mean_image().begin(), manifest.mean_image().end()};
  }
  const bool mean_missing = settings.subtract_mean && data.pixels.mean.empty();
  if (!mean_missing && !names_missing) return data;
  Result<Datasets> sets = OpenDatasets(settings);
  if (!sets.ok() && mean_missing) {
    const Status missing = sets.status().WithContext(
        "data.subtract_mean needs the training set, whose mean is subtracted");
    if (model.has_experiment_file) return missing;
    // What a checkpoint knows of an experiment does not say where the data are.
    return Status(missing.code(), missing.message() +
                                      "; name the experiment's file, or say where it is with "
                                      "--set data.directory=DIR");
  }
  if (!sets.ok()) return data;
  if (mean_missing) data.pixels = std::move(sets->pixels);
  if (names_missing) {
    const auto names = sets->train->class_names();
    data.class_names = {names.begin(), names.end()};
  }
  return data;
}

}  // namespace kumo
