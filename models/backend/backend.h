// A device: several small interfaces, each in a header of its own, and its name.
//
// A worker's vectors (weights, gradients, residuals) are plain arrays in the device's memory, so
// that a step never leaves it; what goes over the network is coded there. Samples go in, and what
// comes out are sums. No header here names a library; backend/cpu/ and its twins do.
//
// A Backend outlives its arrays, ops and loaders, which are those of one net: another one may want
// another layout. None is thread-safe: one caller at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/settings/choices.h"
#include "models/backend/arena_arithmetic.h"
#include "models/backend/device_queue.h"
#include "models/backend/gradient_codec.h"
#include "models/backend/input_loader.h"
#include "models/backend/op.h"
#include "models/backend/step_recorder.h"
#include "models/tensor.h"

namespace kumo {

class Backend : public DeviceQueue,
                public GradientCodec,
                public ArenaArithmetic,
                public StepRecorder,
                public OpFactory {
 public:
  virtual std::string name() const = 0;
  // Requires each formula's mean to be empty or of the field's shape.
  virtual std::unique_ptr<InputLoader> MakeInputLoader(std::vector<InputField> fields,
                                                       int max_batch) = 0;
};

}  // namespace kumo
