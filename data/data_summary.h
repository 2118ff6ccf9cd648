// Summary of a data set from one pass over all samples: statistics of labels and pixels, the
// samples that cannot be read, and a hash of each image.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

struct DataSummary {
  std::vector<int64_t> of_class;  // samples (of a text: tokens) per class
  // Per element of the label, if labels are no classes.
  std::vector<double> label_mean;
  std::vector<double> label_deviation;
  // Per channel, over the pixels of all samples (bytes as levels 0 .. 255); empty without pixels.
  std::vector<double> mean;
  std::vector<double> deviation;
  // Messages of damaged samples ("FILE: REASON"), in the order of the set; no figure counts them.
  std::vector<std::string> damaged;
  // By sample, of images in bytes: hash of the decoded pixels; 0 for a damaged sample. Not
  // resistant to chosen collisions.
  std::vector<uint64_t> image_hashes;
};

struct SummaryOptions {
  int threads = 1;  // reading threads; 0: 1 for samples in memory, else one per core, at most 8
  // Called with the number of samples read so far, by one thread at a time, every few samples.
  std::function<void(int64_t read)> progress = {};
};

// Reads all samples once. FailedPrecondition if they have no labels; the errors of Dataset::Read
// except damage (IsDamage). The result does not depend on the number of threads.
Result<DataSummary> Summarise(const Dataset& dataset, const SummaryOptions& options = {});

// Class weights by which all classes have the same influence: n / (classes x samples of the class),
// where only classes with samples count, and 1 for the others. Their mean over the samples is 1.
std::vector<double> BalancedWeights(std::span<const int64_t> of_class);

// Images of `validation` that are also in `train`, by their hashes.
struct SharedImages {
  int64_t images = 0;  // of validation
  // The first one, and an equal one of the training set.
  int64_t validation = 0;
  int64_t train = 0;

  // A note for people; "" if there are none. validation_samples: of the validation set.
  std::string Note(int64_t validation_samples) const;
};
SharedImages ImagesInBoth(const DataSummary& train, const DataSummary& validation);

}  // namespace kumo
