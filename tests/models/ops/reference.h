// The layers once more, as plain loops in double over samples x channels x height x width: what the
// backends are held against.
#pragma once

#include <vector>

#include "models/backend/op.h"
#include "models/tensor/tensor.h"
#include "proto/model.pb.h"

namespace kumo::reference {

using Numbers = std::vector<double>;

// What a layer computes in training, or in use where `training` is false. `parameters` in the
// order of the layer's tensors.
struct Call {
  const model::Layer& layer;
  std::vector<Shape> shapes;  // of what comes in
  int index = 0;
  int batch = 0;
  bool training = true;
  StepStreams streams;
};
// x: the inputs, one after the other.
Numbers Forward(const Call& call, const Numbers& x, const std::vector<Numbers>& parameters);

Numbers Convolve(const ConvolutionSpec& spec, int batch, const Numbers& x, const Numbers& weight,
                 const Numbers& bias);
Numbers MaxPool(const PoolingSpec& spec, int batch, const Numbers& x);

}  // namespace kumo::reference
