// A trained network for use: a checkpoint's weights, the network that they belong to, and what its
// numbers mean.
#pragma once

#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "common/settings/experiment.h"
#include "common/settings/variables.h"
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

}  // namespace kumo
