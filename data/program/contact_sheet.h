// Contact sheet: an image of training samples, as the network sees them, for visual inspection.
//
// A value and a function; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/open_datasets.h"
#include "data/pictures/drawing.h"

namespace kumo {

struct ContactSheet {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // height x width x 3 (red, green, blue)

  Canvas canvas() { return {height, width, pixels}; }
};

// Draws a row per class with its first `columns` samples, transformed as in an epoch; small images
// are enlarged and large ones reduced, on white. At most the first kMostSheetRows classes. Samples
// without a class of their own are drawn in the order of the set, in at most `columns` rows.
// Objects have a box in the colour of their class with its name, thin if difficult; masks are a
// tint. Of several pictures of a sample the first one is drawn. FailedPrecondition if samples have
// no pictures; the errors of Dataset::Read.
inline constexpr int kMostSheetRows = 100;
Result<ContactSheet> DrawContactSheet(const Datasets& sets, uint64_t seed, int columns);

}  // namespace kumo
