// Backend: one device, as several small interfaces with a header each.
//
// A worker's vectors (weights, gradients, residuals) are plain arrays in the device's memory, so a
// step never leaves the device; pushes and pulls are coded there. Samples go in, and sums come out.
// No header of this folder names a library; backend/cpu/ and backend/cuda/ do.
//
// A Backend outlives its arrays, ops and loaders. These belong to one net: another net may need
// another layout. Not thread-safe: one caller at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/settings/choices.h"
#include "models/backend/arena_arithmetic.h"
#include "models/backend/device_queue.h"
#include "models/backend/gradient_codec.h"
#include "models/backend/input_loader.h"
#include "models/backend/matrix_arithmetic.h"
#include "models/backend/op.h"
#include "models/backend/step_recorder.h"
#include "models/tensor/tensor.h"

namespace kumo {

class Backend : public DeviceQueue,
                public GradientCodec,
                public ArenaArithmetic,
                public MatrixArithmetic,
                public StepRecorder,
                public OpFactory {
 public:
  virtual std::string name() const = 0;
  // Requires each formula's mean to be empty or of the field's shape.
  virtual std::unique_ptr<InputLoader> MakeInputLoader(std::vector<InputField> fields,
                                                       int max_batch) = 0;
};

}  // namespace kumo
