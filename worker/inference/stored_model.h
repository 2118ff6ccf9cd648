// A trained network for use: a checkpoint's weights, the network that they belong to, and what its
// numbers mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "common/settings/experiment.h"
#include "common/settings/variables.h"
#include "models/backend/device_array.h"
#include "models/net.h"
#include "proto/checkpoint.pb.h"
#include "proto/model.pb.h"

namespace kumo {

// What a person names.
struct ModelName {
  std::string file;  // an experiment's; or a checkpoint's folder, which says by itself what it is
  std::vector<std::string> sets;  // "section.key=value"
  std::string checkpoint;         // its folder; "": `file` is it, or holds it
  Variables variables;            // of the environment
};

struct StoredModel {
  std::string checkpoint;         // its folder
  std::vector<std::string> sets;  // ModelName's
  Experiment experiment;          // the file's, or the settings that the checkpoint says
  bool has_experiment_file = false;
  checkpoint::Manifest manifest;
  ParameterLayout layout;
  Buffer<float> weights;  // those that are evaluated
};

// Reads and verifies the checkpoint, and the experiment where one is named. The errors of both;
// FailedPrecondition for a checkpoint of release 0.1 without an experiment.
Result<StoredModel> OpenStoredModel(const ModelName& name);

// The network: the experiment's file, or what the checkpoint says. The errors of LoadNetwork;
// FailedPrecondition where the weights are another one's (CheckSameNetwork, too), and where nobody
// says what it is.
Result<model::Network> NetworkOf(const StoredModel& model);

// What becomes of pixels on their way in, and what the classes are called.
struct ModelData {
  PixelFormula pixels;
  std::vector<std::string> class_names;  // by number; empty: they have none
};
// Opens the data set where the checkpoint does not say the mean image that is subtracted (it is
// long, or an older release wrote the checkpoint), or the classes' names, as an older release's; of
// these it then makes do without. The errors of OpenDatasets and CheckSameInputs.
Result<ModelData> DataOf(const StoredModel& model);

// A stored model's network on its device, ready to be asked what it makes of samples.
//
// Not thread-safe.
class RunningModel {
 public:
  // For up to max_batch samples of one input: int32 where that is of whole numbers, else `type`;
  // of an image in bytes `pixels` makes numbers. Requires a network of one input. As MakeBackend,
  // Net::Make and Net::Connect.
  static Result<std::unique_ptr<RunningModel>> Make(const StoredModel& model,
                                                    const model::Network& network, int max_batch,
                                                    NumberType type, const PixelFormula& pixels);

  const Net& net() const { return *net_; }
  // numbers: of each of `batch` samples that output of net(). As Net::Load and Net::Predict.
  Status Predict(int batch, std::span<const std::byte> input, int output, std::span<float> numbers);

 private:
  RunningModel() = default;

  std::unique_ptr<Backend> backend_;  // outlives what follows
  std::unique_ptr<Net> net_;
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;  // nobody computes them, but a net is told where they would be
  Fields takes_;
  std::vector<std::byte> labels_;  // which mean nothing
};

// Whether a checkpoint is used as it was trained: an experiment file may have changed since, or a
// --set of the training be forgotten, and what comes out would be wrong without a word.
//
// Pure functions; thread-safe.
// FailedPrecondition where the network, as text protobuf, is another one of the same tensors, in
// what counts for its use; names the layers. Not where `sets`, "section.key=value" of the command
// line, say network.file.
Status CheckSameNetwork(const checkpoint::Manifest& manifest, const std::string& network,
                        const std::vector<std::string>& sets);

// FailedPrecondition where samples would become other inputs (data.scale, data.mean, ...) by a
// setting that `sets` do not say; names what it was.
Status CheckSameInputs(const checkpoint::Manifest& manifest, const Experiment& experiment,
                       const std::vector<std::string>& sets);

// FailedPrecondition where the data call a class otherwise than the checkpoint does: an image
// folder that has got another class, a text with other characters. Fine where one says nothing.
Status CheckSameClasses(const checkpoint::Manifest& manifest, std::span<const std::string> names);


}  // namespace kumo
