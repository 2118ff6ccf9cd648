// Attention as products of matrices and a Softmax. Read from: Attention, recognised at its last
// product of matrices: values times softmax of queries times keys, written with the positions as
// the last axis (as Kumo does) or as the one before (as PyTorch does).
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/attention/spec.h"

namespace kumo {
namespace {

// Third `third` of the heads: queries, keys or values.
OnnxValue HeadsOf(const OnnxValue& all, int64_t heads, int64_t third, OnnxBuilder* builder) {
  std::vector<int64_t> extents = all.extents;
  extents[0] = heads;
  return builder->Add("Slice",
                      {all.name, builder->Integers({third * heads}),
                       builder->Integers({(third + 1) * heads}), builder->Integers({1})},
                      extents);
}

}  // namespace

OnnxValue OnnxForm(const AttentionSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const int64_t heads = spec.heads;
  const int64_t length = spec.positions;
  const OnnxValue all = builder.WithExtents(node.input(), {3 * heads, spec.per_head(), length});
  const OnnxValue queries = Transposed(HeadsOf(all, heads, 0, &builder), &builder);
  const OnnxValue keys = HeadsOf(all, heads, 1, &builder);
  const OnnxValue values = HeadsOf(all, heads, 2, &builder);
  const std::vector<int64_t> pairs = {heads, length, length};
  OnnxValue scores = builder.Add("MatMul", {queries.name, keys.name}, pairs);
  const float scale = 1.0f / std::sqrt(static_cast<float>(spec.per_head()));
  scores = Times(scores, builder.Number(scale), &builder);
  if (spec.causal) {
    std::vector<float> mask(static_cast<size_t>(length * length));
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t s = t + 1; s < length; ++s) {
        mask[t * length + s] = -std::numeric_limits<float>::infinity();
      }
    }
    scores = Plus(scores, builder.Numbers({length, length}, mask), &builder);
  }
  const OnnxValue weights = builder.Add("Softmax", {scores.name}, pairs, {{"axis", int64_t{3}}});
  const OnnxValue mean = builder.Add("MatMul", {values.name, Transposed(weights, &builder).name},
                                     {heads, spec.per_head(), length});
  return builder.WithExtents(mean, spec.output().extents());
}

namespace {

constexpr double kMasked = -1e4;  // what is at most this has no weight after the softmax

// Heads, rows, columns: one head if the array has no axis of heads.
std::optional<OnnxOperand> OfHeads(const OnnxOperand& operand) {
  OnnxOperand heads = operand;
  if (operand.view.rank() == 2) {
    heads.view.extents.insert(heads.view.extents.begin(), 1);
    heads.view.strides.insert(heads.view.strides.begin(), 1);
  }
  if (heads.view.rank() != 3) return std::nullopt;
  return heads;
}

OnnxOperand WithLastAxesSwapped(OnnxOperand operand) {
  operand.view = operand.view.Permuted({0, 2, 1});
  return operand;
}

// Whether the constant, at each place of positions x positions, satisfies `may_look`, of a position
// that looks at itself or at an earlier one, or `may_not`.
template <typename MayLook, typename MayNot>
bool IsCausal(const OnnxConstant& mask, int64_t positions, MayLook may_look, MayNot may_not) {
  if (mask.size() != positions * positions) return false;
  // A number without axes is a mask of one position.
  if (!mask.dims.empty() && mask.dims.back() != positions) return false;
  for (int64_t t = 0; t < positions; ++t) {
    for (int64_t s = 0; s < positions; ++s) {
      const double element = mask.at(t * positions + s);
      if (!(s <= t ? may_look(element) : may_not(element))) return false;
    }
  }
  return true;
}

// The operand of the softmax.
struct Scores {
  OnnxOperand queries, keys;  // heads x positions x d, heads x d x positions
  double scale = 1;
  bool causal = false;
};

// Where(mask, -inf, scores) or Where(mask, scores, -inf): the scores; null if it is another mask.
const OnnxOperand* Unmasked(const ImportNode& choice, int64_t positions) {
  if (choice.operands.size() != 3 || !choice.operands[0].constant) return nullptr;
  for (int scores = 1; scores <= 2; ++scores) {
    const auto masked = choice.operands[3 - scores].constant
                            ? choice.operands[3 - scores].constant->Scalar()
                            : std::nullopt;
    if (!masked || *masked > kMasked || !choice.operands[scores].is_array()) continue;
    const bool truth = scores == 1;
    if (IsCausal(
            *choice.operands[0].constant, positions, [&](double x) { return (x != 0) == truth; },
            [&](double x) { return (x != 0) != truth; })) {
      return &choice.operands[scores];
    }
  }
  return nullptr;
}

std::optional<Scores> ScoresOf(const ImportGraph& graph, OnnxOperand operand, int64_t positions) {
  Scores scores;
  constexpr int kMostSteps = 5;
  for (int step = 0; step < kMostSteps; ++step) {
    if (!operand.is_array() || !operand.view.IsInOrder()) return std::nullopt;
    if (const ImportNode* const product = graph.OpOf(operand, "MatMul")) {
      if (product->operands.size() != 2) return std::nullopt;
      const auto queries = OfHeads(product->operands[0]);
      const auto keys = OfHeads(product->operands[1]);
      if (!queries || !keys) return std::nullopt;
      scores.queries = *queries;
      scores.keys = *keys;
      return scores;
    }
    if (const ImportNode* const choice = graph.OpOf(operand, "Where")) {
      const OnnxOperand* const unmasked = Unmasked(*choice, positions);
      if (unmasked == nullptr || scores.causal) return std::nullopt;
      scores.causal = true;
      operand = *unmasked;
      continue;
    }
    bool stepped = false;
    for (const char* const type : {"Add", "Mul", "Div"}) {
      const ImportNode* const op = graph.OpOf(operand, type);
      if (op == nullptr) continue;
      const OnnxOperand& first = op->operands[0];
      const OnnxOperand& second = op->operands[1];
      const bool swapped = !first.is_array();
      const auto& constant = swapped ? first.constant : second.constant;
      if (!constant || (swapped && type == std::string_view("Div"))) return std::nullopt;
      if (type == std::string_view("Add")) {
        const bool mask = IsCausal(
            *constant, positions, [](double x) { return x == 0; },
            [](double x) { return x <= kMasked; });
        if (!mask || scores.causal) return std::nullopt;
        scores.causal = true;
      } else {
        const auto number = constant->Scalar();
        if (!number || *number == 0) return std::nullopt;
        scores.scale =
            type == std::string_view("Mul") ? scores.scale * *number : scores.scale / *number;
      }
      operand = swapped ? second : first;
      stepped = true;
      break;
    }
    if (!stepped) return std::nullopt;
  }
  return std::nullopt;
}

// The node whose channels are queries, keys and values, each heads x d, and whose positions are the
// last axis.
Result<int> InputOf(ImportGraph& graph, const OnnxOperand (&thirds)[3]) {
  const std::vector<int64_t> extents = thirds[0].view.extents;  // heads, d, positions
  const int64_t channels = extents[0] * extents[1];
  const int64_t third = channels * extents[2];
  const StridedView all = StridedView::Of({3, extents[0], extents[1], extents[2]});
  bool together = graph.node(thirds[0].node).shape.size() == 3 * third;
  for (int i = 0; i < 3; ++i) {
    StridedView expected = all.Sliced(0, i, 1);
    expected = *expected.Reshaped(extents);
    together = together && thirds[i].node == thirds[0].node && thirds[i].view.SamePlaces(expected);
  }
  if (together) {
    OnnxOperand input = graph.OutputOf(thirds[0].node, {3 * channels, extents[2]});
    input.from = thirds[0].from;
    return graph.InOrder(input);
  }
  std::vector<int> parts;
  for (const OnnxOperand& one : thirds) {
    OnnxOperand part = one;
    const auto reshaped = one.view.Reshaped({channels, extents[2]});
    if (reshaped) {
      part.view = *reshaped;
    } else {
      KUMO_ASSIGN_OR_RETURN(const int in_order, graph.InOrder(one));
      part = graph.OutputOf(in_order, {channels, extents[2]});
      part.from = one.from;
    }
    KUMO_ASSIGN_OR_RETURN(const int node, graph.InOrder(part));
    parts.push_back(node);
  }
  model::Layer layer;
  layer.mutable_concat();
  return graph.AddLayer(std::move(layer), parts, {}, thirds[0].from);
}

// The softmax over the last axis that the weights are, and the share of them that is dropped.
struct Weights {
  const ImportNode* softmax = nullptr;
  float dropout = 0;
};
Weights WeightsOf(const OnnxCall& call, const OnnxOperand& operand) {
  if (!operand.is_array()) return {};
  Weights weights;
  int node = operand.node;
  if (call.graph.node(node).layer.kind_case() == model::Layer::kDropout) {
    weights.dropout = call.graph.node(node).layer.dropout().ratio();
    node = call.graph.node(node).inputs[0];
  }
  const ImportNode* const softmax = call.graph.OpOf(node, "Softmax");
  if (softmax == nullptr || !softmax->operands[0].is_array()) return {};
  const OnnxCall of = {*softmax->from, softmax->operands, call.graph, call.opset,
                       call.static_batch};
  const int rank = softmax->operands[0].view.rank();
  const auto axis = OnnxCall::SampleAxis(of.Int("axis", call.opset < 13 ? 1 : -1), rank);
  if (axis != rank - 1) return {};
  weights.softmax = softmax;
  return weights;
}

OnnxReading ReadAttention(const OnnxCall& call) {
  if (!call.TwoArrays()) return NotRead();
  for (int of_weights = 0; of_weights < 2; ++of_weights) {
    const Weights found = WeightsOf(call, call.inputs[of_weights]);
    const auto weights = OfHeads(call.inputs[of_weights]);
    const auto other = OfHeads(call.inputs[1 - of_weights]);
    if (found.softmax == nullptr || !weights || !other) continue;
    // Weights are in front of the values, or transposed behind the transposed values.
    const bool in_front = of_weights == 0;
    const OnnxOperand straight = in_front ? *weights : WithLastAxesSwapped(*weights);
    const OnnxOperand values = in_front ? WithLastAxesSwapped(*other) : *other;
    const bool whole = straight.view.IsInOrder() &&
                       straight.view.size() == call.graph.node(straight.node).shape.size();
    if (!whole || straight.view.extents[1] != straight.view.extents[2]) continue;
    const int64_t heads = straight.view.extents[0];
    const int64_t positions = straight.view.extents[1];
    const auto scores = ScoresOf(call.graph, found.softmax->operands[0], positions);
    if (!scores) continue;
    const OnnxOperand thirds[3] = {WithLastAxesSwapped(scores->queries), scores->keys, values};
    const int64_t width = values.view.extents[1];
    bool alike = true;
    for (const OnnxOperand& third : thirds) {
      alike = alike && third.view.extents == std::vector<int64_t>{heads, width, positions};
    }
    if (!alike) return InvalidArgument("queries, keys and values must have one shape");
    const double scale = 1.0 / std::sqrt(static_cast<double>(width));
    if (std::abs(scores->scale - scale) > 1e-4 * scale) {
      return InvalidArgument("its scores are multiplied by " + std::to_string(scores->scale) +
                             "; an attention multiplies them by 1 / sqrt(" + std::to_string(width) +
                             ")");
    }
    KUMO_ASSIGN_OR_RETURN(const int input, InputOf(call.graph, thirds));
    model::Layer layer;
    layer.mutable_attention()->set_heads(static_cast<int>(heads));
    layer.mutable_attention()->set_causal(scores->causal);
    layer.mutable_attention()->set_dropout(found.dropout);
    KUMO_ASSIGN_OR_RETURN(const int node,
                          call.graph.AddLayer(std::move(layer), {input}, {}, &call.node));
    OnnxOperand output = call.graph.OutputOf(node, {heads, width, positions});
    if (in_front) output = WithLastAxesSwapped(std::move(output));
    if (call.inputs[0].view.rank() == 2) {
      output.view.extents.erase(output.view.extents.begin());
      output.view.strides.erase(output.view.strides.begin());
    }
    return Read(std::move(output));
  }
  return NotRead();
}

}  // namespace

std::span<const OnnxReader> AttentionOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"MatMul", ReadAttention}};
  return kReaders;
}

}  // namespace kumo
