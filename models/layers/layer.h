// What a layer is: given its lines of the network file and the shape that comes in, a LayerPlan
// says what goes out, which tensors it trains and how to make its op on a backend. The arithmetic
// belongs to the backend.
//
// A new layer is one file here with a PlanXxx function, one line in registry.cc, and one op in
// models/backend/. Everything here is a value or a pure function; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "models/backend/backend.h"
#include "models/initialiser.h"
#include "models/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

struct ParameterSpec {
  TensorSpec tensor;
  model::Initialiser initialiser;
  Fans fans;
};

struct LayerPlan {
  Shape output;
  std::string detail;  // for people: "5x5, stride 1"
  std::vector<ParameterSpec> parameters;
  // Makes the layer's op; null for a layer that computes nothing.
  std::function<std::unique_ptr<Op>(Backend& backend, int max_batch)> make_op;

  bool takes_vector = false;  // reads a sample as one vector, channels x height x width
  // What the net may use to run two layers as one or in another order, with the same result:
  bool is_monotone = false;              // a non-decreasing function of each number
  std::optional<Activation> activation;  // set by one
  // The same op with an activation of its output in it; null where there is none.
  std::function<std::unique_ptr<Op>(Backend& backend, int max_batch, Activation activation)>
      make_fused_op;
  std::optional<ConvolutionSpec> convolution;  // set by a convolution
  std::optional<PoolingSpec> max_pooling;      // set by max pooling
};

// What a plan is made from. `layer.kind_case()` is the registry entry's.
struct LayerInput {
  const model::Layer& layer;
  Shape shape;  // that comes in
  int index;    // in the network file
};

using PlanLayer = Result<LayerPlan> (*)(const LayerInput& input);

struct LayerKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // what others call it, separated by blanks: for advice only
  PlanLayer plan;
};

// Every layer but the losses, which are in models/losses/loss.h.
std::span<const LayerKind> LayerKinds();
// The list's entry of a kind; null when there is none, or when it is a loss.
const LayerKind* FindLayerKind(model::Layer::KindCase kind);

// InvalidArgument("`field` must be `low` to `high`, is `value`") for a value outside.
Status CheckRange(const char* field, int64_t value, int64_t low, int64_t high);

// A tensor "layer.tensor" that starts as `initialiser` says, or as `fallback` where that is empty.
ParameterSpec MakeParameter(const std::string& layer, const char* tensor,
                            std::vector<int64_t> shape, Segment segment,
                            const model::Initialiser& initialiser,
                            const model::Initialiser& fallback, Fans fans);

// Fallbacks.
model::Initialiser ConstantInitialiser(float value);
model::Initialiser LeCunNormalInitialiser();

// A number of outputs, and the tensors of a layer with one weight and one bias, are limited to
// this many numbers: files come from people, and a typo should be an error and not a crash.
constexpr int64_t kMostNumbers = int64_t{1} << 31;

}  // namespace kumo
