// Layers of network files: a LayerPlan is made from a layer's settings and the shapes of its
// inputs. It has the output's shape, the parameters, and the spec of the op. The arithmetic belongs
// to the backends.
//
// A layer's plan is in the folder of its op (models/ops/); ops.h has the list. Values and pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "models/layers/ops.h"
#include "models/tensor/parameter.h"
#include "models/tensor/tensor.h"
#include "proto/model.pb.h"

namespace kumo {

struct LayerPlan {
  OpSpec spec;
  Shape output;
  std::string detail;  // for people: "5x5, stride 1"
  std::vector<Parameter> parameters;
};

// Input of a plan. `layer.kind_case()` is the LayerKind's.
struct LayerInput {
  const model::Layer& layer;
  std::vector<Shape> shapes;  // of the inputs, as many as LayerKind allows
  int index;                  // in the network file
  int64_t vocabulary = 0;     // of the first input, if it holds integers

  const Shape& shape() const { return shapes[0]; }
};

using PlanLayer = Result<LayerPlan> (*)(const LayerInput& input);

struct LayerKind {
  model::Layer::KindCase kind;
  const char* name;  // as in the network file
  const char* also;  // its names in other programs, separated by blanks: for advice only
  PlanLayer plan;
  int fewest_inputs = 1;
  int most_inputs = 1;
  bool takes_integers = false;  // and no other values
};

// Inputs of a layer that takes any number of them.
inline constexpr int kAnyNumberOfInputs = 1000;

// The layers that become one op, defined in the op's plan.cc: `Name`Layers().
#define KUMO_DECLARE_LAYERS(Name) std::span<const LayerKind> Name##Layers();
KUMO_OPS(KUMO_DECLARE_LAYERS)
#undef KUMO_DECLARE_LAYERS

// All layers but the losses (models/layers/loss.h), op by op in the order of KUMO_OPS.
std::span<const LayerKind> LayerKinds();
// The list's entry of a kind; null when there is none, or when it is a loss.
const LayerKind* FindLayerKind(model::Layer::KindCase kind);

// InvalidArgument("`field` must be `low` to `high`, is `value`") for a value outside.
Status CheckRange(const char* field, int64_t value, int64_t low, int64_t high);

// InvalidArgument("`what` must have at most 2^28 numbers, is 3x224x224") for a larger sample, also
// if the product of its extents is no int64.
Status CheckSampleSize(const char* what, const Shape& shape);

// InvalidArgument("`field` must be at least 0 and less than 1, is `ratio`") for another dropout.
Status CheckDropout(const char* field, float ratio);
// "0.25"
std::string RatioText(float ratio);

// A tensor "layer.tensor" with `initialiser`, or with `fallback` if `initialiser` is empty.
Parameter MakeParameter(const std::string& layer, const char* tensor, std::vector<int64_t> shape,
                        TensorKind kind, const model::Initialiser& initialiser,
                        const model::Initialiser& fallback, Fans fans);

// Adds a tensor "layer.tensor" whose elements all begin as `start`.
void AddConstant(const LayerInput& input, const char* tensor, std::vector<int64_t> shape,
                 TensorKind kind, float start, LayerPlan* plan);

// A plan without parameters whose output has the shape of the first input.
LayerPlan PlanOfSameShape(const LayerInput& input, OpSpec spec, std::string detail = "");

// InvalidArgument("epsilon must be a positive number, or 0 for `standard`, is ...") for another
// epsilon.
Status CheckEpsilon(float epsilon, const char* standard);

// InvalidArgument unless all inputs have the shape of the first, or its height and width.
Status CheckSameShape(const LayerInput& input);
Status CheckSamePlane(const LayerInput& input);

// InvalidArgument unless the input is an image, channels x height x width, or less.
Status CheckImage(const LayerInput& input);
// InvalidArgument unless the input is a sequence: channels x length.
Status CheckSequence(const LayerInput& input);

// Fallbacks.
model::Initialiser ConstantInitialiser(float value);
model::Initialiser LeCunNormalInitialiser();
model::Initialiser NormalInitialiser(float deviation);

// Extents of a shape.
constexpr int kMostRank = 8;

// Largest number of outputs, and of elements in the tensors of a layer with one weight and one
// bias: files come from people, and a typo should be an error and not a crash.
constexpr int64_t kMostNumbers = int64_t{1} << 31;

}  // namespace kumo
