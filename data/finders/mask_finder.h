// Mask finder: recognises folders of images beside folders of masks (dataset_finder.h).
//
//   images/17.jpg          masks/17.png
//   train/images/17.jpg    train/masks/17.png     validation/images/...
//   images/train/17.jpg    masks/train/17.png     images/validation/...
//
// A function of the disk's contents; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "data/finders/found_dataset.h"

namespace kumo {

// path: of the folder or archive that has the listed images; directory and name: its parts. None
// if it has no such folders. InvalidArgument if no mask has the name of an image; the errors of
// SizesOf.
Result<std::optional<FoundDataset>> FindMasks(const std::string& path, const std::string& directory,
                                              const std::string& name, const ImageListing& listing);

}  // namespace kumo
