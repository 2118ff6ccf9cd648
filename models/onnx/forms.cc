#include "models/onnx/forms.h"

#include <numeric>
#include <utility>

namespace kumo {
namespace {

// A constant of a number for each channel, for arrays of these extents.
std::vector<int64_t> OfChannels(const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape(extents.size(), 1);
  shape[0] = extents[0];
  return shape;
}

}  // namespace

std::vector<std::string> OnnxNode::OperandsOf(const OnnxValue& value) const {
  std::vector<std::string> names = {value.name};
  names.insert(names.end(), parameters.begin(), parameters.end());
  return names;
}

std::vector<int64_t> PlaneExtents(const Shape& shape) {
  return {shape.channels(), shape.height(), shape.width()};
}

std::vector<int64_t> SequenceExtents(const Shape& shape) {
  return {shape.channels(), shape.plane()};
}

OnnxValue Times(const OnnxValue& value, const std::string& factor, OnnxBuilder* builder) {
  return builder->Add("Mul", {value.name, factor}, value.extents);
}

OnnxValue Plus(const OnnxValue& value, const std::string& term, OnnxBuilder* builder) {
  return builder->Add("Add", {value.name, term}, value.extents);
}

OnnxValue Transposed(const OnnxValue& value, OnnxBuilder* builder) {
  std::vector<int64_t> extents = value.extents;
  std::vector<int64_t> axes(extents.size() + 1);  // with the batch's
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(extents.rbegin()[0], extents.rbegin()[1]);
  std::swap(axes.rbegin()[0], axes.rbegin()[1]);
  return builder->Add("Transpose", {value.name}, std::move(extents), {{"perm", std::move(axes)}});
}

OnnxValue ScaledByChannel(const OnnxValue& value, const std::string& scale,
                          const std::string& shift, OnnxBuilder* builder) {
  const auto broadcast = [&](const std::string& tensor) {
    if (value.extents.size() == 1) return tensor;
    return builder->Add("Reshape", {tensor, builder->Integers(OfChannels(value.extents))}, {}).name;
  };
  const OnnxValue scaled = Times(value, broadcast(scale), builder);
  return shift.empty() ? scaled : Plus(scaled, broadcast(shift), builder);
}

}  // namespace kumo
