// Found data set: the settings that read a data set which the dataset finder has recognised, and
// helpers of its finders.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "data/readers/image_files.h"

namespace kumo {

struct FoundDataset {
  Experiment::Data data;  // settings that read it; mean and deviation are not set. With masks
                          // data.classes is an upper bound
  std::string form;       // for people: "image folders of 5 classes"
  std::string input;      // field that a network takes; "": the first one
  // Columns of a table: names, and their use.
  std::vector<std::pair<std::string, std::string>> columns = {};
  std::vector<std::string> notes = {};  // for people
};

enum class NamedPart { kNone, kTraining, kValidation };
// The set that a file or folder is by its name: a training set has "train" in its name, a
// validation set "val", "test" or "t10k".
NamedPart PartIn(std::string_view name);
// The names of the training and of the validation file; the second one may be "".
std::pair<std::string, std::string> PartsOf(const std::vector<std::string>& names);

// The first bytes of a file, without a byte order mark.
Result<std::string> StartOf(const std::string& path);

// Sizes of a set's images.
struct ImageSizes {
  std::vector<int64_t> first;  // channels, height, width
  bool equal = true;
  bool colour = false;
  int64_t shorter_side = 0;  // the median
};

// Sizes of some images of a container, evenly spaced; damaged ones do not count. DataLoss if none
// can be read; the errors of ReadImages.
Result<ImageSizes> SizesOf(const ImageContainer& container, const std::vector<std::string>& files);

inline constexpr int kMostDataClasses = 1'000'000;  // data.classes'
inline constexpr int kMostMaskClasses = 255;        // 255 is none

// Sets data.image_size, if images of such sizes have to be scaled, and augmentation that suits
// natural images. Grey ones, often of writing, are not mirrored. on_demand: images can be decoded
// at each read.
void SetImageSize(const ImageSizes& sizes, bool on_demand, Experiment::Data* data);

// Likewise for images whose pixels have classes; a U-Net takes sides that are multiples of 8.
void SetMaskedImageSize(const ImageSizes& sizes, Experiment::Data* data);

}  // namespace kumo
