// Exporters write the arithmetic of shapes as nodes of the graph: a Reshape to (batch, -1) becomes
// Shape, Gather, Unsqueeze, Concat and Reshape. Kumo has no layers for these nodes. FoldConstants
// computes each of them while the file is read, so that only the Reshape with a constant shape is
// left. Masks of attention are computed likewise (Range, Less, Where, Expand, Trilu).
//
// - The size of the batch is not known. kBatchExtent stands for it in a shape. Arithmetic passes it
//   on only if the other operand is neutral (x * 1, x + 0), otherwise the result is kUnknownExtent.
// - Ops that move elements (Transpose, Slice, Expand, broadcasting) are strided views: one list of
//   places, then one copy.
// - Integers are computed without overflow (it gives kUnknownExtent), floats in double and rounded
//   once.
// - A file may be hostile: sizes are checked against kMostComputed before memory is taken, and
//   ImportGraph::Count limits the sum over all nodes. Operands that do not fit give no result; the
//   node is then a gap of the import, not an error of its own.
#include "models/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace kumo {
namespace {

using Constants = std::optional<std::vector<OnnxConstant>>;
using Fold = Constants (*)(const OnnxCall& call);

Constants One(OnnxConstant constant) {
  std::vector<OnnxConstant> outputs;
  outputs.push_back(std::move(constant));
  return outputs;
}

bool IsComputable(const std::vector<int64_t>& dims) {
  const bool empty = std::ranges::count(dims, 0) > 0;
  return empty ? std::ranges::all_of(dims, [](int64_t d) { return d >= 0; })
               : SizeOfExtents(dims, kMostComputed).has_value();
}

std::optional<size_t> AxisOf(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
}

// The elements of a constant that is broadcast to these dims, by place.
StridedView BroadcastView(const OnnxConstant& constant, const std::vector<int64_t>& dims) {
  const StridedView own = StridedView::Of(constant.dims);
  StridedView view = {dims, std::vector<int64_t>(dims.size()), 0};
  const size_t lacking = dims.size() - constant.dims.size();
  for (size_t axis = lacking; axis < dims.size(); ++axis) {
    const bool spread = constant.dims[axis - lacking] == 1;
    view.strides[axis] = spread ? 0 : own.strides[axis - lacking];
  }
  return view;
}

std::optional<std::vector<int64_t>> DimsOfAll(const OnnxCall& call) {
  std::vector<std::vector<int64_t>> all;
  for (const OnnxOperand& input : call.inputs) {
    if (!input.constant || input.constant->size() == 0) return std::nullopt;
    all.push_back(input.constant->dims);
  }
  auto dims = BroadcastExtents(all);
  if (dims && !IsComputable(*dims)) return std::nullopt;
  return dims;
}

bool StandsForBatch(int64_t x) { return x == kBatchExtent || x == kUnknownExtent; }

// Integer arithmetic without overflow; extents of the batch stay what they are or become unknown.
int64_t IntegerOf(std::string_view op, int64_t a, int64_t b) {
  if (StandsForBatch(a) || StandsForBatch(b)) {
    const int64_t other = StandsForBatch(a) ? b : a;
    const bool kept = (op == "Mul" && other == 1) || (op == "Add" && other == 0) ||
                      (StandsForBatch(a) && ((op == "Div" && b == 1) || (op == "Sub" && b == 0)));
    return kept ? (StandsForBatch(a) ? a : b) : kUnknownExtent;
  }
  int64_t result = 0;
  bool overflow = false;
  if (op == "Add") overflow = __builtin_add_overflow(a, b, &result);
  if (op == "Sub") overflow = __builtin_sub_overflow(a, b, &result);
  if (op == "Mul") overflow = __builtin_mul_overflow(a, b, &result);
  if (op == "Div") {
    overflow = b == 0 || b == -1;
    result = overflow ? (b == -1 ? -a : 0) : a / b;
    overflow = b == 0;
  }
  if (op == "Pow" || op == "Mod") overflow = true;
  return overflow ? kUnknownExtent : result;
}

double FloatOf(std::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  return std::fmod(a, b);
}

Constants FoldArithmetic(const OnnxCall& call) {
  const auto dims = DimsOfAll(call);
  if (!dims || call.inputs.size() != 2) return std::nullopt;
  const OnnxConstant& a = call.constant(0);
  const OnnxConstant& b = call.constant(1);
  const std::vector<int64_t> of_a = BroadcastView(a, *dims).Places();
  const std::vector<int64_t> of_b = BroadcastView(b, *dims).Places();
  const std::string& op = call.node.op_type();
  if (!a.is_float() && !b.is_float()) {
    std::vector<int64_t> elements(of_a.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = IntegerOf(op, (*a.integers)[of_a[i]], (*b.integers)[of_b[i]]);
    }
    return One(OnnxConstant::OfIntegers(*dims, std::move(elements)));
  }
  std::vector<float> elements(of_a.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>(FloatOf(op, a.at(of_a[i]), b.at(of_b[i])));
  }
  return One(OnnxConstant::OfFloats(*dims, std::move(elements)));
}

bool Compare(std::string_view op, double a, double b) {
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  return op == "And" ? a != 0 && b != 0 : a != 0 || b != 0;
}

Constants FoldComparison(const OnnxCall& call) {
  const auto dims = DimsOfAll(call);
  if (!dims || call.inputs.size() != 2) return std::nullopt;
  const std::vector<int64_t> of_a = BroadcastView(call.constant(0), *dims).Places();
  const std::vector<int64_t> of_b = BroadcastView(call.constant(1), *dims).Places();
  std::vector<int64_t> elements(of_a.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] =
        Compare(call.node.op_type(), call.constant(0).at(of_a[i]), call.constant(1).at(of_b[i]))
            ? 1
            : 0;
  }
  return One(OnnxConstant::OfIntegers(*dims, std::move(elements)));
}

double FunctionOf(std::string_view op, double x) {
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Neg") return -x;
  if (op == "Reciprocal") return 1 / x;
  return std::exp(x);
}

Constants FoldFunction(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  if (!x.is_float() || x.size() > kMostComputed) return std::nullopt;
  std::vector<float> elements(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) {
    elements[i] = static_cast<float>(FunctionOf(call.node.op_type(), x.at(i)));
  }
  return One(OnnxConstant::OfFloats(x.dims, std::move(elements)));
}

Constants FoldNot(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  if (x.is_float()) return std::nullopt;
  std::vector<int64_t> elements = *x.integers;
  for (int64_t& element : elements) element = element == 0 ? 1 : 0;
  return One(OnnxConstant::OfIntegers(x.dims, std::move(elements)));
}

Constants FoldWhere(const OnnxCall& call) {
  const auto dims = DimsOfAll(call);
  if (!dims || call.inputs.size() != 3 || call.constant(0).is_float()) return std::nullopt;
  std::vector<int64_t> places[3];
  for (size_t i = 0; i < 3; ++i) places[i] = BroadcastView(call.constant(i), *dims).Places();
  const auto choice = [&](size_t i) {
    return (*call.constant(0).integers)[places[0][i]] != 0 ? size_t{1} : size_t{2};
  };
  if (call.constant(1).is_float() != call.constant(2).is_float()) return std::nullopt;
  if (!call.constant(1).is_float()) {
    std::vector<int64_t> elements(places[0].size());
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t of = choice(i);
      elements[i] = (*call.constant(of).integers)[places[of][i]];
    }
    return One(OnnxConstant::OfIntegers(*dims, std::move(elements)));
  }
  std::vector<float> elements(places[0].size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const size_t of = choice(i);
    elements[i] = (*call.constant(of).floats)[places[of][i]];
  }
  return One(OnnxConstant::OfFloats(*dims, std::move(elements)));
}

// A copy under the name of the output: exporters write one tensor for equal ones, and the others
// so.
Constants FoldIdentity(const OnnxCall& call) {
  OnnxConstant constant = call.constant(0);
  constant.name = call.node.output(0);
  return One(std::move(constant));
}

Constants FoldConstant(const OnnxCall& call) {
  for (const onnx::AttributeProto& attribute : call.node.attribute()) {
    if (attribute.name() == "value") {
      Result<OnnxConstant> constant = ReadConstant(attribute.t(), nullptr);
      if (!constant.ok()) return std::nullopt;
      constant->name.clear();
      return One(*std::move(constant));
    }
    if (attribute.name() == "value_float") {
      return One(OnnxConstant::OfFloats({}, {attribute.f()}));
    }
    if (attribute.name() == "value_int") {
      return One(OnnxConstant::OfIntegers({}, {std::max(attribute.i(), kUnknownExtent + 1)}));
    }
    if (attribute.name() == "value_floats") {
      return One(OnnxConstant::OfFloats({attribute.floats_size()},
                                        {attribute.floats().begin(), attribute.floats().end()}));
    }
    if (attribute.name() == "value_ints") {
      std::vector<int64_t> elements(attribute.ints().begin(), attribute.ints().end());
      for (int64_t& element : elements) element = std::max(element, kUnknownExtent + 1);
      return One(OnnxConstant::OfIntegers({attribute.ints_size()}, std::move(elements)));
    }
  }
  return std::nullopt;
}

Constants FoldCast(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const int64_t to = call.Int("to", 0);
  const bool to_float = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
                        to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
  if (to_float == x.is_float()) {
    if (to != onnx::TensorProto::BOOL || x.is_float()) return One(x);
  }
  if (x.size() > kMostComputed) return std::nullopt;
  if (to_float) {
    std::vector<float> elements(static_cast<size_t>(x.size()));
    for (int64_t i = 0; i < x.size(); ++i) {
      const bool none = StandsForBatch((*x.integers)[i]);
      elements[i] = none ? std::nanf("") : static_cast<float>((*x.integers)[i]);
    }
    return One(OnnxConstant::OfFloats(x.dims, std::move(elements)));
  }
  constexpr double kMost = 1e18;
  std::vector<int64_t> elements(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) {
    const double element = x.at(i);
    if (to == onnx::TensorProto::BOOL) {
      elements[i] = element != 0 ? 1 : 0;
    } else {
      const bool fits = std::abs(element) < kMost;
      elements[i] = fits ? static_cast<int64_t>(element) : kUnknownExtent;
    }
  }
  return One(OnnxConstant::OfIntegers(x.dims, std::move(elements)));
}

Constants FoldReshape(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const auto shape = call.IntsOf("shape", 1);
  if (!shape || x.size() == 0) return std::nullopt;
  std::vector<int64_t> dims;
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t extent = (*shape)[i];
    if (extent == 0 && i < x.dims.size()) extent = x.dims[i];
    if (extent == -1 && open < 0) {
      open = static_cast<int>(i);
      extent = 1;
    }
    if (extent < 1 || extent > x.size() / known) return std::nullopt;
    known *= extent;
    dims.push_back(extent);
  }
  if (open >= 0) dims[open] = x.size() / known;
  if (SizeOfExtents(dims) != x.size()) return std::nullopt;
  return One(x.WithDims(std::move(dims)));
}

Constants FoldTranspose(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  if (x.size() == 0) return std::nullopt;
  std::vector<int64_t> perm = call.Ints("perm");
  if (perm.empty()) {
    for (size_t i = x.dims.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> sorted = perm;
  std::ranges::sort(sorted);
  if (perm.size() != x.dims.size()) return std::nullopt;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  return One(x.Taken(StridedView::Of(x.dims).Permuted({perm.begin(), perm.end()})));
}

Constants FoldUnsqueeze(const OnnxCall& call) {
  const auto axes = call.IntsOf("axes", 1);
  if (!axes) return std::nullopt;
  std::vector<int64_t> dims = call.constant(0).dims;
  const size_t rank = dims.size() + axes->size();
  std::vector<size_t> places;
  for (const int64_t axis : *axes) {
    const auto place = AxisOf(axis, rank);
    if (!place) return std::nullopt;
    places.push_back(*place);
  }
  std::ranges::sort(places);
  for (const size_t place : places) {
    if (place > dims.size()) return std::nullopt;
    dims.insert(dims.begin() + static_cast<int64_t>(place), 1);
  }
  return One(call.constant(0).WithDims(std::move(dims)));
}

Constants FoldSqueeze(const OnnxCall& call) {
  const std::vector<int64_t>& dims = call.constant(0).dims;
  const auto axes = call.IntsOf("axes", 1);
  std::vector<bool> dropped(dims.size());
  for (size_t axis = 0; axis < dims.size() && !axes; ++axis) dropped[axis] = dims[axis] == 1;
  for (const int64_t axis : axes.value_or(std::vector<int64_t>())) {
    const auto place = AxisOf(axis, dims.size());
    if (!place || dims[*place] != 1) return std::nullopt;
    dropped[*place] = true;
  }
  std::vector<int64_t> kept;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (!dropped[axis]) kept.push_back(dims[axis]);
  }
  return One(call.constant(0).WithDims(std::move(kept)));
}

Constants FoldSlice(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const auto starts = call.IntsOf("starts", 1);
  const auto ends = call.IntsOf("ends", 2);
  auto axes = call.IntsOf("axes", 3);
  const auto steps = call.IntsOf("steps", 4);
  if (!starts || !ends || starts->size() != ends->size() || x.size() == 0) return std::nullopt;
  if (steps && std::ranges::count(*steps, 1) != std::ssize(*steps)) return std::nullopt;
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (axes->size() != starts->size()) return std::nullopt;
  StridedView view = StridedView::Of(x.dims);
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto axis = AxisOf((*axes)[i], x.dims.size());
    if (!axis || StandsForBatch((*starts)[i]) || StandsForBatch((*ends)[i])) return std::nullopt;
    const int64_t extent = view.extents[*axis];
    const auto clamped = [extent](int64_t place) {
      return std::clamp<int64_t>(place < 0 ? place + extent : place, 0, extent);
    };
    const int64_t begin = clamped((*starts)[i]);
    const int64_t end = clamped((*ends)[i]);
    if (end <= begin) return std::nullopt;
    view = view.Sliced(static_cast<int>(*axis), begin, end - begin);
  }
  return One(x.Taken(view));
}

Constants FoldGather(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const OnnxConstant& indices = call.constant(1);
  const auto axis = AxisOf(call.Int("axis", 0), x.dims.size());
  if (!axis || indices.is_float() || x.size() == 0 || indices.size() == 0) return std::nullopt;
  std::vector<int64_t> dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(*axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<int64_t>(*axis) + 1, x.dims.end());
  if (!IsComputable(dims)) return std::nullopt;
  const int64_t extent = x.dims[*axis];
  const int64_t inner = StridedView::Of(x.dims).strides[*axis];
  const int64_t outer = x.size() / (extent * inner);
  bool all = indices.size() == extent;
  std::vector<int64_t> rows;
  for (int64_t row : *indices.integers) {
    if (row < 0 && row >= -extent) row += extent;
    if (row < 0 || row >= extent) return std::nullopt;
    all = all && row == std::ssize(rows);
    rows.push_back(row);
  }
  if (all) return One(x.WithDims(std::move(dims)));
  const auto gather = [&](const auto& elements) {
    auto gathered = std::remove_cvref_t<decltype(elements)>();
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t row : rows) {
        const auto from = elements.begin() + (o * extent + row) * inner;
        gathered.insert(gathered.end(), from, from + inner);
      }
    }
    return gathered;
  };
  return One(x.is_float() ? OnnxConstant::OfFloats(std::move(dims), gather(*x.floats))
                          : OnnxConstant::OfIntegers(std::move(dims), gather(*x.integers)));
}

// Along the first axis, as shapes, and scales of a Resize, are put together.
Constants FoldConcat(const OnnxCall& call) {
  std::vector<int64_t> integers;
  std::vector<float> floats;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const OnnxConstant& part = call.constant(i);
    if (part.is_float() != call.constant(0).is_float() || part.dims.size() != 1) {
      return std::nullopt;
    }
    if (part.is_float()) {
      floats.insert(floats.end(), part.floats->begin(), part.floats->end());
    } else {
      integers.insert(integers.end(), part.integers->begin(), part.integers->end());
    }
    if (std::ssize(integers) + std::ssize(floats) > kMostComputed) return std::nullopt;
  }
  const int64_t size = std::ssize(integers) + std::ssize(floats);
  return One(floats.empty() ? OnnxConstant::OfIntegers({size}, std::move(integers))
                            : OnnxConstant::OfFloats({size}, std::move(floats)));
}

Constants FoldExpand(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const auto shape = call.IntsOf("shape", 1);
  if (!shape || x.size() == 0) return std::nullopt;
  const auto dims = BroadcastExtents({x.dims, *shape});
  if (!dims || !IsComputable(*dims)) return std::nullopt;
  return One(x.Taken(BroadcastView(x, *dims)));
}

Constants FoldRange(const OnnxCall& call) {
  double numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!call.IsConstant(i) || call.constant(i).is_float()) return std::nullopt;
    const auto number = ImportGraph::ScalarOf(call.inputs[i]);
    if (!number || StandsForBatch((*call.constant(i).integers)[0])) return std::nullopt;
    numbers[i] = *number;
  }
  const double count = numbers[2] == 0 ? -1 : std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count >= 1 && count <= static_cast<double>(kMostComputed))) return std::nullopt;
  std::vector<int64_t> elements(static_cast<size_t>(count));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<int64_t>(numbers[0] + static_cast<double>(i) * numbers[2]);
  }
  const int64_t size = std::ssize(elements);
  return One(OnnxConstant::OfIntegers({size}, std::move(elements)));
}

Constants FoldConstantOfShape(const OnnxCall& call) {
  const OnnxConstant& shape = call.constant(0);
  if (shape.is_float() || !IsComputable(*shape.integers)) return std::nullopt;
  OnnxConstant value = OnnxConstant::OfFloats({1}, {0.0f});
  for (const onnx::AttributeProto& attribute : call.node.attribute()) {
    if (attribute.name() != "value") continue;
    Result<OnnxConstant> read = ReadConstant(attribute.t(), nullptr);
    if (!read.ok() || read->size() != 1) return std::nullopt;
    value = *std::move(read);
  }
  const std::vector<int64_t>& dims = *shape.integers;
  const int64_t size = std::ranges::count(dims, 0) > 0 ? 0 : SizeOfExtents(dims).value_or(0);
  const auto count = static_cast<size_t>(size);
  return One(
      value.is_float()
          ? OnnxConstant::OfFloats(dims, std::vector<float>(count, (*value.floats)[0]))
          : OnnxConstant::OfIntegers(dims, std::vector<int64_t>(count, (*value.integers)[0])));
}

Constants FoldTrilu(const OnnxCall& call) {
  const OnnxConstant& x = call.constant(0);
  const size_t rank = x.dims.size();
  if (rank < 2 || x.size() > kMostComputed) return std::nullopt;
  double diagonal = 0;
  if (call.IsConstant(1)) diagonal = ImportGraph::ScalarOf(call.inputs[1]).value_or(0);
  const bool upper = call.Int("upper", 1) != 0;
  const int64_t columns = x.dims[rank - 1];
  const int64_t rows = x.dims[rank - 2];
  const auto keeps = [&](int64_t i) {
    const auto row = static_cast<double>(i / columns % rows);
    const auto column = static_cast<double>(i % columns);
    return upper ? column >= row + diagonal : column <= row + diagonal;
  };
  const auto triangle = [&](auto elements) {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!keeps(static_cast<int64_t>(i))) elements[i] = 0;
    }
    return elements;
  };
  return One(x.is_float() ? OnnxConstant::OfFloats(x.dims, triangle(*x.floats))
                          : OnnxConstant::OfIntegers(x.dims, triangle(*x.integers)));
}

Constants FoldShape(const OnnxCall& call) {
  const std::vector<int64_t>& dims = call.constant(0).dims;
  return One(OnnxConstant::OfIntegers({std::ssize(dims)}, dims));
}

constexpr std::pair<std::string_view, Fold> kFolds[] = {
    {"Constant", FoldConstant},
    {"Identity", FoldIdentity},
    {"Cast", FoldCast},
    {"Shape", FoldShape},
    {"Reshape", FoldReshape},
    {"Transpose", FoldTranspose},
    {"Unsqueeze", FoldUnsqueeze},
    {"Squeeze", FoldSqueeze},
    {"Slice", FoldSlice},
    {"Gather", FoldGather},
    {"Concat", FoldConcat},
    {"Expand", FoldExpand},
    {"Range", FoldRange},
    {"ConstantOfShape", FoldConstantOfShape},
    {"Where", FoldWhere},
    {"Trilu", FoldTrilu},
    {"Not", FoldNot},
    {"Equal", FoldComparison},
    {"Less", FoldComparison},
    {"LessOrEqual", FoldComparison},
    {"Greater", FoldComparison},
    {"GreaterOrEqual", FoldComparison},
    {"And", FoldComparison},
    {"Or", FoldComparison},
    {"Add", FoldArithmetic},
    {"Sub", FoldArithmetic},
    {"Mul", FoldArithmetic},
    {"Div", FoldArithmetic},
    {"Pow", FoldArithmetic},
    {"Mod", FoldArithmetic},
    {"Sqrt", FoldFunction},
    {"Neg", FoldFunction},
    {"Reciprocal", FoldFunction},
    {"Exp", FoldFunction},
};

}  // namespace

std::optional<std::vector<int64_t>> BroadcastExtents(const std::vector<std::vector<int64_t>>& all) {
  std::vector<int64_t> extents;
  for (const std::vector<int64_t>& one : all) {
    if (one.size() > extents.size())
      extents.insert(extents.begin(), one.size() - extents.size(), 1);
  }
  for (const std::vector<int64_t>& one : all) {
    const size_t lacking = extents.size() - one.size();
    for (size_t axis = 0; axis < one.size(); ++axis) {
      int64_t& extent = extents[axis + lacking];
      if (one[axis] == extent || one[axis] == 1) continue;
      if (extent != 1) return std::nullopt;
      extent = one[axis];
    }
  }
  return extents;
}

std::optional<std::vector<OnnxConstant>> FoldConstants(const OnnxCall& call) {
  const auto* const found = std::ranges::find(kFolds, std::string_view(call.node.op_type()),
                                              &std::pair<std::string_view, Fold>::first);
  if (found == std::end(kFolds) || call.node.output_size() < 1) return std::nullopt;
  if (call.inputs.empty() && found->first != "Constant") return std::nullopt;
  // Inputs that are left out are the last ones, of ops that do without.
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool optional = found->first == "Slice" || found->first == "Trilu";
    if (!call.IsConstant(i) && (i == 0 || !optional)) return std::nullopt;
  }
  if (found->first == "Gather" && call.inputs.size() < 2) return std::nullopt;
  return found->second(call);
}

}  // namespace kumo
