// What the ops of a net compute, as values: the shapes they work on, and their settings. A backend
// makes an op of a spec (backend/op.h); nothing here knows of one. Shapes are of one sample.
//
// A new op adds its spec here, and a line to OpSpec.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "models/tensor.h"

namespace kumo {

enum class Activation { kRelu, kLeakyRelu, kGelu, kGeluTanh, kSilu, kTanh, kSigmoid };

// Whether a larger number never gives a smaller one.
bool IsNonDecreasing(Activation activation);
// Whether the derivative is told from the number that came in; else the value tells it.
bool DerivesFromInput(Activation activation);

struct PoolingSpec {
  enum class Kind { kMax, kAverage };
  static constexpr char kName[] = "pooling";

  Shape input;
  int kernel_height = 1;
  int kernel_width = 1;
  int stride = 1;
  int pad = 0;
  Kind kind = Kind::kMax;
  // Whether windows reach beyond the padded input, so as to leave nothing of it out.
  bool ceil = false;
  Shape output() const;
};

// Parameters: weight [outputs][channels / groups][kernel_height][kernel_width], bias [outputs].
struct ConvolutionSpec {
  static constexpr char kName[] = "convolution";

  Shape input;
  int outputs = 1;
  int kernel_height = 1;
  int kernel_width = 1;
  int stride = 1;
  int pad = 0;
  int dilation = 1;
  bool bias = true;
  // Max pooling of the result, in windows that neither overlap nor leave gaps, without padding
  // and not in ceil mode.
  std::optional<PoolingSpec> pool = std::nullopt;
  // As many convolutions side by side: group g makes the g-th part of the outputs of the g-th part
  // of the input's channels. Divides both numbers. Not with `pool` where it is more than 1.
  int groups = 1;
  Shape output() const;  // before the pooling
  int64_t channels_per_group() const { return input.channels() / groups; }
  // One of the groups.
  ConvolutionSpec OfGroup() const;
  int64_t products() const;
};

// At each of `positions`, of inputs channels outputs ones. Parameters: weight [outputs][inputs],
// bias [outputs].
struct FullyConnectedSpec {
  static constexpr char kName[] = "fully_connected";

  int64_t inputs = 1;
  int64_t outputs = 1;
  bool bias = true;
  std::optional<Activation> activation;  // of the result; see OpFactory::FusesActivation
  int64_t positions = 1;
  int64_t products() const { return inputs * outputs * positions; }
};

struct ActivationSpec {
  static constexpr char kName[] = "activation";

  Activation activation = Activation::kRelu;
  Shape shape;
  float slope = 0;  // of kLeakyRelu: what numbers below 0 are multiplied by, in (0, 1)
};

// Channels x height x width to one long vector in that order.
struct FlattenSpec {
  static constexpr char kName[] = "flatten";

  Shape shape;
};

// Numbers in other places: number (i_0, i_1, ...) of the output is number offset + sum i_a stride_a
// of the input, counted as people count them, the last axis's next to each other. None is taken
// twice.
struct RearrangeSpec {
  static constexpr char kName[] = "rearrange";

  Shape input;
  Shape output;
  std::vector<int64_t> strides;  // as many as the output's extents
  int64_t offset = 0;
  // Of the output's number i.
  int64_t SourceOf(int64_t i) const;
  // Whether all numbers stay where they are, in that order.
  bool keeps_order() const;
};

struct DropoutSpec {
  static constexpr char kName[] = "dropout";

  Shape shape;
  float ratio = 0;
  int layer = 0;  // place in the network file: tells the streams of two layers apart
};

// Parameters: scale, shift, running mean, running variance, each [channels].
struct BatchNormalisationSpec {
  static constexpr char kName[] = "batch_normalisation";

  Shape shape;
  float epsilon = 1e-5f;
  float momentum = 0.9f;
  std::optional<Activation> activation;  // of the result; see OpFactory::FusesActivation
};

// Of each sample by itself: its channels, in `groups` parts, each to mean 0 and variance 1.
// Parameters: scale, shift, each [channels], or, where `elementwise`, of the sample's shape.
struct GroupNormalisationSpec {
  static constexpr char kName[] = "group_normalisation";

  Shape shape;
  int groups = 1;  // divides the channels
  float epsilon = 1e-5f;
  bool elementwise = false;
  int64_t group_size() const { return shape.size() / groups; }
};

// At each position the channels, as a vector, to length 1. Parameter: scale [channels].
struct L2NormalisationSpec {
  static constexpr char kName[] = "l2_normalisation";

  Shape shape;
  float epsilon = 1e-10f;  // added to the square of the length
};

// At each position the channels to mean 0 and variance 1. Parameters: scale and, where `shift`,
// shift, each [channels].
struct PositionNormalisationSpec {
  static constexpr char kName[] = "position_normalisation";

  Shape shape;
  float epsilon = 1e-5f;
  bool shift = true;
};

// Whole numbers in [0, vocabulary) to vectors. Parameter: weight [vocabulary][outputs].
struct EmbeddingSpec {
  static constexpr char kName[] = "embedding";

  int64_t vocabulary = 1;
  int64_t outputs = 1;
  int64_t positions = 1;
  Shape output() const { return {outputs, positions}; }
};

// A vector of its own added to each position. Parameter: weight [positions][channels].
struct PositionalEmbeddingSpec {
  static constexpr char kName[] = "positional_embedding";

  Shape shape;
};

// See Attention in proto/model.proto.
struct AttentionSpec {
  static constexpr char kName[] = "attention";

  int64_t channels = 1;  // of the output, and of queries, keys and values
  int64_t positions = 1;
  int heads = 1;  // divides the channels
  bool causal = false;
  // Share of the weights that a training step drops: weight ((sample heads + head) positions +
  // query) positions + key as that number of the layer's stream says (DropoutStream).
  float dropout = 0;
  int layer = 0;  // as in DropoutSpec

  Shape input() const { return {3 * channels, positions}; }
  Shape output() const { return {channels, positions}; }
  int64_t per_head() const { return channels / heads; }
  // Pairs of positions, of which the first looks at the second.
  int64_t pairs() const { return causal ? positions * (positions + 1) / 2 : positions * positions; }
  int64_t products() const { return 2 * channels * pairs(); }
};

// The sum of its inputs, two or more, from the first on.
struct AddSpec {
  static constexpr char kName[] = "add";

  Shape shape;
};

// The product of its two inputs, number by number.
struct MultiplySpec {
  static constexpr char kName[] = "multiply";

  Shape shape;
};

// The channels of its inputs, one after the other.
struct ConcatSpec {
  static constexpr char kName[] = "concat";

  std::vector<Shape> inputs;  // of one height and width
  Shape output() const;
};

using OpSpec =
    std::variant<ConvolutionSpec, FullyConnectedSpec, PoolingSpec, ActivationSpec, FlattenSpec,
                 DropoutSpec, BatchNormalisationSpec, GroupNormalisationSpec, L2NormalisationSpec,
                 RearrangeSpec, PositionNormalisationSpec, EmbeddingSpec, PositionalEmbeddingSpec,
                 AttentionSpec, AddSpec, MultiplySpec, ConcatSpec>;

// Multiplications of one sample's way forward, each with an addition, in convolutions and matrix
// products; 0 for what has none.
int64_t ProductsOf(const OpSpec& spec);

// Of each position: scores are classes x positions, labels, in [0, classes), one for each position.
struct SoftmaxCrossEntropySpec {
  static constexpr char kName[] = "softmax_cross_entropy";
  // The sums that the op adds up, by their places.
  static constexpr int kLossSum = 0;
  static constexpr int kCorrectSum = 1;
  static constexpr int kTopSum = 2;  // of the first of `top`; the others follow
  static constexpr int kMostTops = 4;

  Shape scores;
  // The share of each label that is dealt out to all classes evenly, its own among them.
  float smoothing = 0;
  // How many samples have their label among the so many largest scores is summed up for each. Of
  // equal scores that of the earlier class is taken to be larger.
  std::vector<int> top = {};
  int sums() const { return kTopSum + static_cast<int>(top.size()); }
  float weight = 1;  // of the gradient, not of the sums
  // Labels are a share of each class (float32, in the order of the scores) and not the number of
  // one. Of those with the largest share the first is the label that the metrics go by.
  bool shares = false;
};

// Of d, how far a sample's score is from its label's number: the mean over the sample of
// factor d^2 / 2 where |d| < delta, and of factor delta (|d| - delta / 2) elsewhere. Labels are as
// many float32 as scores, in the order of their shape.
struct DifferenceLossSpec {
  static constexpr char kName[] = "difference_loss";
  // As above.
  static constexpr int kLossSum = 0;
  static constexpr int kAbsoluteSum = 1;  // of the means of |d|

  Shape scores;
  float factor = 2;
  float delta = std::numeric_limits<float>::infinity();
  static int sums() { return kAbsoluteSum + 1; }
  float weight = 1;
};

using LossSpec = std::variant<SoftmaxCrossEntropySpec, DifferenceLossSpec>;

}  // namespace kumo
