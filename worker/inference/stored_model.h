// Stored model: the weights of a checkpoint with their network and the preparation of its inputs,
// ready to be evaluated, exported or run.
//
// Values and functions, except RunningModel, which is not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment.h"
#include "models/backend/device_array.h"
#include "models/graph/graph.h"
#include "models/net/detector.h"
#include "models/net/net.h"
#include "proto/checkpoint.pb.h"
#include "proto/model.pb.h"

namespace kumo {

// A model as a user names it.
struct ModelName {
  std::string file;               // an experiment file, or a checkpoint's folder
  std::vector<std::string> sets;  // "section.key=value"
  std::string checkpoint;         // its folder; "": `file` is or contains it
  Variables variables;            // of the environment
};

struct StoredModel {
  std::string checkpoint;         // its folder
  std::vector<std::string> sets;  // ModelName::sets
  Experiment experiment;          // from the file, or from the checkpoint's settings
  bool has_experiment_file = false;
  checkpoint::Manifest manifest;
  ParameterLayout layout;  // without factors, on which trained weights do not depend
  Buffer<float> weights;   // the evaluated ones
};

// Reads and verifies the checkpoint, and reads the experiment file if one is named. The errors of
// both; FailedPrecondition for a checkpoint of release 0.1 without an experiment file.
Result<StoredModel> OpenStoredModel(const ModelName& name);

// Returns the network from the experiment file, or from the checkpoint, without factors of steps.
// The errors of LoadNetwork and CheckSameNetwork; FailedPrecondition if the weights belong to
// another network, or if neither contains the network.
Result<model::Network> NetworkOf(const StoredModel& model);

// Preparation of the pixels, and the names of the classes.
struct ModelData {
  PixelFormula pixels;
  std::vector<std::string> class_names;  // by number; empty: unnamed
};
// Opens the data set only if the checkpoint lacks the subtracted mean image (it is long, or an
// older release wrote the checkpoint) or the class names; unreadable class names are left out. The
// errors of OpenDatasets and CheckSameInputs.
Result<ModelData> DataOf(const StoredModel& model);
// Whether tokens are the characters of a text, whose names DataOf finds; else they are bytes.
bool HasCharacters(const Experiment::Data& data);

// True if an output (an index) is the scores of a sample's classes. Pure.
bool IsOfClasses(const Graph& graph, int output);

// Running model: a stored model's network on its device, with its weights. Not thread-safe.
class RunningModel {
 public:
  // For up to max_batch samples of one input, of element type int32 for an input of integers,
  // otherwise `type`; `pixels` converts bytes of images. Requires a network of one input. The
  // errors of MakeBackend, Net::Make and Net::Connect.
  static Result<std::unique_ptr<RunningModel>> Make(const StoredModel& model,
                                                    const model::Network& network, int max_batch,
                                                    NumberType type, const PixelFormula& pixels);

  const Net& net() const { return *net_; }
  // Writes the output with this index for each of `batch` samples to `numbers`. The errors of
  // Net::Load and Net::Predict.
  Status Predict(int batch, std::span<const std::byte> input, int output, std::span<float> numbers);
  // The objects in the first `samples` of `batch` samples, in pixels of the network's input. With
  // the same `batch` a sample's objects have the same bits, whatever the others are. Requires a
  // detector. The errors of Net::Load and Detector::Detect.
  Result<std::vector<std::vector<Detection>>> Detect(int batch, int samples,
                                                     std::span<const std::byte> input,
                                                     const DetectionRule& rule);

 private:
  RunningModel() = default;
  Status Load(int batch, std::span<const std::byte> input);

  std::unique_ptr<Backend> backend_;  // outlives what follows
  std::unique_ptr<Net> net_;
  std::optional<Detector> detector_;
  DeviceArray<float> weights_;
  Fields takes_;
  std::vector<std::byte> zeros_;  // the targets, which nothing reads
  std::vector<int32_t> no_entries_;
};

// The following three functions check that a checkpoint is used as it was trained. An experiment
// file may have changed since the training, or a --set may be missing now; the results would then
// be silently wrong. Pure; thread-safe.
//
// CheckSameNetwork: FailedPrecondition if the network (text protobuf) has the same tensors as the
// checkpoint's but computes something else; the message names the layers. Ok if `sets`
// ("section.key=value" from the command line) override network.file.
Status CheckSameNetwork(const checkpoint::Manifest& manifest, const std::string& network,
                        const std::vector<std::string>& sets);

// CheckSameInputs: FailedPrecondition, with the former value, if a setting that `sets` do not
// override (data.scale, data.mean, ...) would change the inputs.
Status CheckSameInputs(const checkpoint::Manifest& manifest, const Experiment& experiment,
                       const std::vector<std::string>& sets);

// CheckSameClasses: FailedPrecondition if the data name a class differently from the checkpoint,
// for example because an image folder has a new class or a text has other characters. Ok if one of
// them has no names.
Status CheckSameClasses(const checkpoint::Manifest& manifest, std::span<const std::string> names);

}  // namespace kumo
