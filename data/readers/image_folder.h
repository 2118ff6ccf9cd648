// The reader "image_folder": a folder, maybe in an archive, with one folder of images per class.
//
// Classes are numbered by their names' order. The samples are the first image of each class, then
// the second of each, and so on, so that the first so many of them are of all classes.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument where there are no images, images beside the folders of the classes, or another
// number of these than request.classes; otherwise as OpenImageSet.
Result<std::unique_ptr<Dataset>> OpenImageFolder(const ReaderRequest& request);
Result<DatasetExtents> MeasureImageFolder(const ReaderRequest& request);

}  // namespace kumo
