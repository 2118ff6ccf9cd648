// Dataset finder: recognises the data sets in a folder or a file (`kumo new --data`): image
// folders, images with masks, and the layout of Pascal VOC, also in an archive, CSV, IDX, CIFAR,
// CNTK's text format and text.
//
// A function of the disk's contents; thread-safe.
#pragma once

#include <string>

#include "common/base/status.h"
#include "data/finders/found_dataset.h"

namespace kumo {

// The first bytes decide, then names: of files, and of sets (PartIn). Without a validation set
// data.validation_images is empty. InvalidArgument if no data set is found; the errors of reading
// it.
Result<FoundDataset> FindDataset(const std::string& path);

}  // namespace kumo
