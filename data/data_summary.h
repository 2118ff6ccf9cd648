// Summary of a data set from one pass over all samples: statistics of labels and pixels, the
// samples that cannot be read, and a hash of each image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

// Figures of the objects of detection data.
struct ObjectFigures {
  int64_t objects = 0;
  int64_t difficult = 0;
  int64_t images_without = 0;
  int64_t most = 0;  // objects of one image
  // By the area of the box, as COCO's evaluation parts them: below 32 x 32 pixels, below 96 x 96,
  // and larger.
  std::array<int64_t, 3> by_area{};
  // Sides of the images, in pixels; INT64_MAX and 0 without images.
  int64_t least_height = INT64_MAX, most_height = 0;
  int64_t least_width = INT64_MAX, most_width = 0;

  // Adds a sample's image of these extents and its lists, as a detection set has them.
  void Add(std::span<const int64_t> image, std::span<const std::byte> boxes,
           std::span<const std::byte> difficult_flags);
  void Add(const ObjectFigures& other);
};

struct DataSummary {
  // Samples (of a text: tokens, of detection data: objects; see counts_pixels).
  std::vector<int64_t> of_class;
  bool counts_pixels = false;            // of_class counts the pixels of masks
  std::optional<ObjectFigures> objects;  // of detection data
  // Per element of the label, or of the first field of numbers, if labels are no classes.
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

// Reads all samples once. FailedPrecondition if they have neither labels nor objects; the errors of
// Dataset::Read except damage (IsDamage). The result does not depend on the number of threads.
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
