// Dataset finder: recognises the data sets in a folder or a file (`kumo new --data`): image
// folders, and the layout of Pascal VOC, also in an archive, IDX, CIFAR, CNTK's text format and
// text.
//
// A function of the disk's contents; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

struct FoundDataset {
  Experiment::Data data;  // settings that read it; mean and deviation are not set
  std::string form;       // for people: "image folders of 5 classes"
};

// The first bytes decide, then names: a set with "train" in its name is the training set, one with
// "val", "test" or "t10k" the validation set. Without a validation set data.validation_images is
// empty. InvalidArgument if no data set is found; the errors of reading it.
Result<FoundDataset> FindDataset(const std::string& path);

}  // namespace kumo
