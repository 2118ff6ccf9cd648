// List room: makes the lists of two data sets equally long, so that one network takes both. The
// first extent of a list is the largest number of entries in its set, which differs between a
// training and a validation set.
#pragma once

#include <memory>

#include "common/job/fields.h"
#include "data/samples/dataset.h"

namespace kumo {

// The fields with lists at least as long as the lists of that name in `other`.
Fields WithRoomOf(Fields fields, const Fields& other);

// The set, or a view of it whose lists have at least the room of the same lists in `other`.
std::unique_ptr<Dataset> WithRoomOf(std::unique_ptr<Dataset> set, const Fields& other);

}  // namespace kumo
