// Parameter: a tensor of a network, its role, and its content before the first step.
//
// A value; thread-safe as such.
#pragma once

#include "common/job/parameter_layout.h"
#include "models/tensor/initialiser.h"
#include "proto/model.pb.h"

namespace kumo {

// The role of a tensor in its layer.
enum class TensorKind {
  kWeight,
  kBias,
  kScale,      // or the shift, of a normalisation
  kStatistic,  // running mean or variance
};

struct Parameter {
  TensorKind kind = TensorKind::kWeight;
  TensorSpec tensor;
  model::Initialiser initialiser;
  Fans fans;
};

}  // namespace kumo
