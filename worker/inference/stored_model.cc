#include "worker/inference/stored_model.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/relocation.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/job/network_changes.h"
#include "common/settings/choices.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"
#include "common/settings/parser.h"
#include "data/open_datasets.h"
#include "models/devices/devices.h"
#include "models/network.h"
#include "worker/training/initial_weights.h"
#include "worker/training/job_memory.h"
#include "worker/training/opened_job.h"

namespace kumo {

namespace {

// The checkpoint's settings, overridden by those of the command line.
Result<Experiment> ExperimentOf(const checkpoint::Manifest& manifest, const ModelName& name) {
  LoadedExperiment loaded;
  KUMO_ASSIGN_OR_RETURN(loaded.experiment, ExperimentOfText(manifest.experiment_text()));
  ExperimentReader reader(&name.variables, &loaded);
  reader.ReadCommandLine(name.sets);
  reader.ResolvePaths();
  if (!loaded.problems.empty()) return InvalidArgument(loaded.problems.front());
  FillInDataFolders(name.variables, &loaded.experiment.data);
  return std::move(loaded.experiment);
}

// Number of tokens for which the network was trained; 0 if it takes no tokens.
int64_t VocabularyOf(const checkpoint::Manifest& manifest) {
  const Result<model::Network> network = ParseNetwork(manifest.network(), "");
  if (!network.ok()) return manifest.class_names_size();
  for (const model::Input& input : network->input()) {
    if (input.vocabulary() > 0) return input.vocabulary();
  }
  return 0;
}

// The file of model.experiment. Its words stand for the numbers with which the job was trained.
Result<model::Network> LoadNetworkFile(const StoredModel& model) {
  return LoadNetwork(model.experiment.network.file, {.vocabulary = VocabularyOf(model.manifest),
                                                     .classes = model.experiment.data.classes});
}

Result<ParameterLayout> LayoutFor(const StoredModel& model) {
  if (HasTensors(model.manifest)) return LayoutOf(model.manifest);
  if (!model.has_experiment_file) {
    return FailedPrecondition("checkpoint " + model.checkpoint +
                              " was written by release 0.1, without its network; name its "
                              "experiment file, and the checkpoint with --checkpoint");
  }
  KUMO_ASSIGN_OR_RETURN(const model::Network network, LoadNetworkFile(model));
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
  KUMO_ASSIGN_OR_RETURN(
      model.manifest,
      OrNewestValid(ReadManifest(files, folder.parent, folder.name), files, folder.parent));
  if (!model.has_experiment_file) {
    KUMO_ASSIGN_OR_RETURN(model.experiment, ExperimentOf(model.manifest, name));
  }
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout layout, LayoutFor(model));
  model.layout = WithoutFactors(layout);
  KUMO_ASSIGN_OR_RETURN(model.weights, LoadStoredWeights(model.checkpoint, model.layout));
  return model;
}

Result<model::Network> NetworkOf(const StoredModel& model) {
  const std::string& said = model.manifest.network();
  if (!model.has_experiment_file && said.empty()) {
    return FailedPrecondition(
        "checkpoint " + model.checkpoint +
        " does not contain its network (an older release wrote it, the network "
        "file is long, or a program of worker.command trained it); name its experiment file, and "
        "the "
        "checkpoint with --checkpoint");
  }
  if (model.has_experiment_file) KUMO_RETURN_IF_ERROR(CheckHasNetwork(model.experiment));
  Result<model::Network> network =
      model.has_experiment_file
          ? LoadNetworkFile(model)
          : ParseNetwork(said, "the network of checkpoint " + model.checkpoint);
  if (!network.ok()) return network.status();
  ClearFactors(&*network);
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

bool IsOfClasses(const Graph& graph, int output) {
  const int value = graph.outputs[output].value;
  return graph.IsScores(value) && graph.values[value].shape.plane() == 1;
}

bool HasCharacters(const Experiment::Data& data) {
  return TraitsOf(data.reader).samples == SampleKind::kTokens &&
         data.tokens == TextTokens::kCharacters;
}

Result<ModelData> DataOf(const StoredModel& model) {
  KUMO_RETURN_IF_ERROR(CheckSameInputs(model.manifest, model.experiment, model.sets));
  ModelData data;
  const Experiment::Data& settings = model.experiment.data;
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
  KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
  // A table's picture has any name, but its numbers are vectors.
  const Shape& shape = graph.values[0].shape;
  const bool is_picture =
      TraitsOf(settings.reader).samples == SampleKind::kImages && shape.plane() > 1;
  const Fields first = {{graph.inputs[0], NumberType::kUint8, shape.extents(),
                         is_picture ? FieldKind::kPicture : FieldKind::kNumbers}};
  KUMO_ASSIGN_OR_RETURN(std::vector<PixelFormula> formulas,
                        PixelFormulasFor(settings, first, "network " + network.name()));
  data.pixels = std::move(formulas.front());
  const checkpoint::Manifest& manifest = model.manifest;
  data.class_names = {manifest.class_names().begin(), manifest.class_names().end()};
  const bool is_said = !manifest.network().empty() || !data.class_names.empty();
  // The characters of a text are not in the manifest if there are too many.
  const bool names_missing = (!is_said && model.has_experiment_file) ||
                             (HasCharacters(settings) && data.class_names.empty());
  if (settings.subtract_mean && manifest.mean_image_size() == first[0].numbers()) {
    data.pixels.mean = {manifest.mean_image().begin(), manifest.mean_image().end()};
  }
  const bool mean_missing = settings.subtract_mean && data.pixels.mean.empty();
  if (!mean_missing && !names_missing) return data;
  Result<Datasets> sets = OpenDatasets(settings);
  if (!sets.ok() && mean_missing) {
    const Status missing = sets.status().WithContext(
        "data.subtract_mean needs the training set to compute its mean image");
    if (model.has_experiment_file) return missing;
    // A checkpoint's settings do not include the location of the data.
    return Status(missing.code(), missing.message() +
                                      "; name the experiment file, or locate the data with "
                                      "--set data.directory=DIR");
  }
  if (!sets.ok()) return data;
  if (mean_missing) {
    const int place = FindField(sets->fields(), first[0].name);
    if (place >= 0) data.pixels = std::move(sets->pixels[place]);
  }
  if (names_missing) {
    const auto names = sets->train->class_names();
    data.class_names = {names.begin(), names.end()};
  }
  return data;
}

Result<std::unique_ptr<RunningModel>> RunningModel::Make(const StoredModel& model,
                                                         const model::Network& network,
                                                         int max_batch, NumberType type,
                                                         const PixelFormula& pixels) {
  std::unique_ptr<RunningModel> made(new RunningModel());
  KUMO_ASSIGN_OR_RETURN(made->backend_, MakeBackend(model.experiment.network));
  Backend* const backend = made->backend_.get();
  KUMO_ASSIGN_OR_RETURN(made->net_, Net::Make(network, max_batch, backend));
  const int64_t floats = model.layout.size();
  made->weights_ = DeviceArray<float>(*backend, floats, "the weights");
  backend->Write(model.weights.data(), floats * sizeof(float), made->weights_.data());
  KUMO_RETURN_IF_ERROR(backend->Wait());
  KUMO_RETURN_IF_ERROR(made->net_->Bind(model.layout, made->weights_.data(), nullptr));
  made->takes_ = made->net_->takes();
  for (Field& field : made->takes_) {
    if (field.list) field.extents[0] = 1;
  }
  if (made->takes_[0].type == NumberType::kUint8) made->takes_[0].type = type;
  KUMO_RETURN_IF_ERROR(made->net_->Connect(made->takes_, {&pixels, 1}));
  for (const Field& field : made->takes_) {
    made->zeros_.resize(std::max<size_t>(made->zeros_.size(), max_batch * field.bytes()));
  }
  made->no_entries_.resize(max_batch);
  made->detector_ = Detector::Of(made->net_.get());
  return made;
}

Status RunningModel::Load(int batch, std::span<const std::byte> input) {
  std::vector<std::span<const std::byte>> fields = {input};
  std::vector<std::span<const int32_t>> counts(takes_.size());
  for (size_t f = 1; f < takes_.size(); ++f) {
    fields.push_back(std::span(zeros_).first(batch * takes_[f].bytes()));
    if (takes_[f].list) counts[f] = std::span(no_entries_).first(batch);
  }
  return net_->Load({batch, fields, counts});
}

Status RunningModel::Predict(int batch, std::span<const std::byte> input, int output,
                             std::span<float> numbers) {
  KUMO_RETURN_IF_ERROR(Load(batch, input));
  return net_->Predict(output, numbers);
}

Result<std::vector<std::vector<Detection>>> RunningModel::Detect(int batch, int samples,
                                                                 std::span<const std::byte> input,
                                                                 const DetectionRule& rule) {
  CHECK(detector_) << net_->name() << " is no detector";
  KUMO_RETURN_IF_ERROR(Load(batch, input));
  net_->Forward();
  return detector_->Detect(samples, rule);
}

namespace {

// Whether the setting changes a sample on its way into the network.
bool IsOfInput(std::string_view key) {
  const Option* const option = OptionTable::Shared().Find(key);
  return option != nullptr && option->Has(Effect::kInput);
}

// Whether --set names the setting, also by its old key.
bool IsSaid(std::string_view key, const std::vector<std::string>& sets) {
  return std::ranges::any_of(sets, [&](std::string set) {
    std::erase(set, ' ');  // blanks around the key are ignored
    const Option* const option = OptionTable::Shared().Find(set.substr(0, set.find('=')));
    return option != nullptr && option->key == key;
  });
}

// As an option of the command line.
std::string SetOption(const std::string& key, std::string value) {
  std::erase(value, ' ');
  return "--set " + key + "=" + value;
}

}  // namespace

Status CheckSameNetwork(const checkpoint::Manifest& manifest, const std::string& network,
                        const std::vector<std::string>& sets) {
  const std::vector<SettingChange> changes =
      NetworkChanges(manifest.network(), network, NetworkUse::kUse);
  if (changes.empty() || IsSaid("network.file", sets)) return OkStatus();
  return FailedPrecondition("checkpoint " + manifest.name() +
                            " was trained with another network of the same tensors (then -> "
                            "now): " +
                            DescribeChanges(changes) +
                            "; restore the network file of the training, or use the new network "
                            "with --set network.file=FILE");
}

Status CheckSameInputs(const checkpoint::Manifest& manifest, const Experiment& experiment,
                       const std::vector<std::string>& sets) {
  std::string differences;
  std::string options;
  for (const SettingChange& change : SettingChanges(manifest.experiment_text(), experiment)) {
    if (!IsOfInput(change.key) || IsSaid(change.key, sets)) continue;
    differences += (differences.empty() ? "" : ", ") + DescribeChange(change);
    options += " " + SetOption(change.key, change.then);
  }
  if (differences.empty()) return OkStatus();
  return FailedPrecondition("checkpoint " + manifest.name() +
                            " was trained with other settings (then -> now): " + differences +
                            "; restore them with" + options +
                            ", or confirm the new values with --set");
}

Status CheckSameClasses(const checkpoint::Manifest& manifest, std::span<const std::string> names) {
  const auto& known = manifest.class_names();
  if (known.empty() || names.empty()) return OkStatus();
  const auto [ours, theirs] = std::ranges::mismatch(known, names);
  if (ours == known.end() && theirs == names.end()) return OkStatus();
  const auto shown = [](auto at, auto end) {
    return at == end ? std::string("missing") : "'" + Printable(*at) + "'";
  };
  return FailedPrecondition("checkpoint " + manifest.name() + " has other class names: class " +
                            std::to_string(ours - known.begin()) + " is " +
                            shown(ours, known.end()) + " in the checkpoint, " +
                            shown(theirs, names.end()) + " in the data");
}

}  // namespace kumo
