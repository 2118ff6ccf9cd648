// `kumo predict`: what a checkpoint's network says of samples that are in no data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct PredictRequest {
  // Images; folders of them, and archives, with all that is below: in the order of these, and what
  // one holds sorted by name. Of a network that was trained on CNTK's text format, files of that,
  // with labels or without.
  std::vector<std::string> inputs;
  int top = 5;              // so many classes of each sample
  std::string output = "";  // of the network; "": its first one
};

struct Likely {
  int64_t number = 0;  // of the class
  std::string name;    // "" where classes have none
  double probability = 0;
};
struct Prediction {
  std::string file;             // and, of a sample among several, ":" and its number from 1 on
  std::vector<Likely> classes;  // the likeliest first; of equal ones the one of the lower number
  std::vector<float> numbers = {};  // where the output is no scores of classes: these
};

struct Predictions {
  std::string checkpoint;
  std::vector<Prediction> samples;
};

// Images of other sizes or colours than the network's are cut to its proportions, scaled and made
// grey or coloured, as data.image_size and data.shorter_side have it done in evaluation.
// InvalidArgument where there is no image, the network takes none, or has no such output; DataLoss
// where one is damaged, and all is as if none had been asked about; otherwise the errors of
// CheckShorterSide, OpenStoredModel, NetworkOf, DataOf and of the device.
Result<Predictions> Predict(const ModelName& name, const PredictRequest& request);

// As a table, or as "json" or "csv" (RFC 4180).
std::string TextOf(const Predictions& predictions, const std::string& format);

}  // namespace kumo
