// Validation split: cuts one data set into a training and a validation set.
//
// The validation samples are spread over the set: it is cut into as many equal stretches of
// successive samples as there are validation samples, and each stretch gives one of its samples, at
// a place that depends on the number of the stretch only. So every worker finds the same split,
// sets that are sorted by class keep their proportions, and both parts keep the order of the set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

// Number of validation samples among `samples`, at least 1; at least one sample is left for
// training. Requires samples >= 2 and a share in (0, 1).
int64_t ValidationSamples(int64_t samples, double share);

enum class SplitPart : uint8_t { kTraining, kValidation };

// The part of each sample. The same requirements.
std::vector<SplitPart> PartsOfSamples(int64_t samples, double share);

// One part of the whole set, at most its first `limit` samples (0: all). The samples are read from
// `whole`, which both parts may share. Requires whole->size() >= 2 and a share in (0, 1).
std::unique_ptr<Dataset> PartOf(std::shared_ptr<const Dataset> whole, double share, SplitPart part,
                                int64_t limit);

}  // namespace kumo
