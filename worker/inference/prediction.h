// Predictions of a checkpoint's network for samples that are in no data set (`kumo predict`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/output_format.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct PredictRequest {
  // Images, folders and archives of images (searched recursively): in this order, the contents of
  // one sorted by name. For a network that was trained on CNTK's text format: files of that format,
  // with or without labels.
  std::vector<std::string> inputs;
  int top = 5;              // classes per sample
  std::string output = "";  // output of the network; "": the first one
  // Folder for the masks of images, whose network tells the class of each pixel; "": none.
  std::string masks = "";
};

struct Likely {
  int64_t number = 0;  // of the class
  std::string name;    // "" if classes have no names
  double probability = 0;
};
struct Prediction {
  std::string file;  // with ":" and the number (from 1) if the file holds several samples
  std::vector<Likely> classes;      // likeliest first; ties by the smaller number
  std::vector<float> numbers = {};  // of an output that is no scores of classes
  std::string mask = "";            // file of the mask, in place of numbers; "": none
};

struct Predictions {
  std::string checkpoint;
  std::vector<Prediction> samples;        // without damaged images
  std::vector<std::string> damaged = {};  // "FILE: REASON" of images that cannot be read
  bool skips_damaged = false;             // data.damaged = skip
};

// Images of other sizes or colours are cropped to the network's proportions, scaled and converted
// to grey or colour, as data.image_size and data.shorter_side specify for evaluation. A damaged
// image has no prediction, and is logged and listed.
//
// A mask has the size of the network's output: PNG with the number of each pixel's class, whose
// scores are the largest, as an index of a palette.
//
// InvalidArgument if there is no image, the network takes none, or it has no such output, or masks
// are asked for and its output is none; DataLoss
// if an archive is damaged; otherwise the errors of CheckShorterSide, OpenStoredModel, NetworkOf,
// DataOf and of the device.
Result<Predictions> Predict(const ModelName& name, const PredictRequest& request);

// DataLoss if images are damaged, unless they are skipped and there are others.
Status DamageIn(const Predictions& predictions);

// The predictions as a table, JSON or CSV (RFC 4180).
std::string TextOf(const Predictions& predictions, AnswerFormat format);

}  // namespace kumo
