// Samples as they are trained on, beside each other in one image: what a person looks at before a
// training that takes hours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/dataset.h"

namespace kumo {

struct ContactSheet {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // height x width x red, green, blue
};

// A row for each class, the first one's on top, of its first `columns` samples with the transforms
// of an epoch; small images are enlarged, large ones made smaller, on a white ground. Of sets with
// many classes the first kMostSheetRows. FailedPrecondition where samples are not images with
// labels; the error of Dataset::Read.
inline constexpr int kMostSheetRows = 100;
Result<ContactSheet> DrawContactSheet(const Datasets& sets, uint64_t seed, int columns);

// Complete or not at all. The errors of AtomicFile.
Status WritePng(const ContactSheet& sheet, const std::string& path);

}  // namespace kumo
