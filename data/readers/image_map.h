// The reader "image_map": a text file with a line for each sample, as CNTK's ImageReader takes it:
// the image's path, a tab, its class' number. Paths are relative to the file's own folder; into an
// archive they lead as photos.zip@/cat/1.jpg or photos.zip/cat/1.jpg, all into the same one.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "data/readers/registry.h"

namespace kumo {

// InvalidArgument, naming file and line, for what is no such line or a class that is not below
// request.classes; otherwise as OpenImageSet.
Result<std::unique_ptr<Dataset>> OpenImageMap(const ReaderRequest& request);
Result<DatasetExtents> MeasureImageMap(const ReaderRequest& request);

}  // namespace kumo
