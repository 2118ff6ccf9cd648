// Picture of a detector's objects in an evaluation, for TensorBoard.
#pragma once

#include <span>
#include <string>

#include "common/job/fields.h"
#include "models/net/detector.h"

namespace kumo {

// A PNG of at most kMostPictureBytes: the first samples of a minibatch, up to four, with the
// objects found (as DrawObjects draws them; of a score of at least kShownScore) and, in thin
// frames, the data's objects. fields: the samples'. "" if the samples have no picture in bytes.
std::string DrawFound(const Fields& fields, const SampleBatch& batch,
                      std::span<const Detector::Compared> samples,
                      std::span<const std::string> class_names);

}  // namespace kumo
