// Files of images with a label each: what the readers of images have in
// common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_files.h"
#include "data/readers/registry.h"

namespace kumo {

// The samples, in order.
struct ImageSet {
  std::string name;  // what messages call it
  ImageContainer container;
  std::vector<std::string> files;        // in the container; not empty
  std::vector<int32_t> labels;           // of the files
  std::vector<std::string> class_names;  // maybe none
};

// Images are decoded at the start, or each time when they are read, as request.decode says; the
// samples are the same. Every image has request.image_size or, where that is empty, the size and
// channels of the first one: another size of image_size's is cut to its proportions and scaled, and
// is refused where there is no image_size. Damaged images are refused, or left out and counted
// where request.skip_damaged says so; with request.originals each keeps its own size, and is
// decoded when it is read. What an archive holds is kept decoded in request.cache, once for all
// processes of the machine. Every error names the file.
Result<std::unique_ptr<Dataset>> OpenImageSet(ImageSet set, const ReaderRequest& request);

// Whether an error of reading one image says that the image is to blame, not a setting, the memory
// or a disk that may be read later. An error of the disk itself (EIO) counts as the image's.
bool IsDamage(const Status& error);

// Counts damaged images as samples.
Result<DatasetExtents> MeasureImageSet(const ImageSet& set, const ReaderRequest& request);

}  // namespace kumo
