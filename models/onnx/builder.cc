#include "models/onnx/builder.h"

#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

template <typename Number>
void Fill(std::string name, onnx::TensorProto::DataType type, std::span<const int64_t> extents,
          std::span<const Number> numbers, onnx::TensorProto* tensor) {
  tensor->set_name(std::move(name));
  tensor->set_data_type(type);
  tensor->mutable_dims()->Add(extents.begin(), extents.end());
  tensor->set_raw_data(numbers.data(), numbers.size_bytes());
}

}  // namespace

int64_t OnnxValue::size() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

OnnxSetting::OnnxSetting(const char* setting, int64_t value) {
  attribute.set_name(setting);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

OnnxSetting::OnnxSetting(const char* setting, float value) {
  attribute.set_name(setting);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
}

OnnxSetting::OnnxSetting(const char* setting, std::vector<int64_t> values) {
  attribute.set_name(setting);
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
}

OnnxSetting::OnnxSetting(const char* setting, std::string word) {
  attribute.set_name(setting);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(std::move(word));
}

void OnnxBuilder::Begin(const std::string& layer) {
  layer_ = layer;
  names_ = 0;
}

// No tensor, input or output of a network is called so: their names have no '/'.
std::string OnnxBuilder::NewName(const std::string& what) {
  return layer_ + "/" + what + (++names_ == 1 ? "" : "_" + std::to_string(names_));
}

OnnxValue OnnxBuilder::Add(const char* op, const std::vector<std::string>& inputs,
                           std::vector<int64_t> extents,
                           std::initializer_list<OnnxSetting> settings) {
  onnx::NodeProto* const node = graph_.add_node();
  const std::string name = NewName(op);
  node->set_name(name);
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(name);
  for (const OnnxSetting& setting : settings) *node->add_attribute() = setting.attribute;
  return {name, std::move(extents)};
}

std::pair<OnnxValue, OnnxValue> OnnxBuilder::AddPair(const char* op,
                                                     const std::vector<std::string>& inputs,
                                                     std::vector<int64_t> extents,
                                                     std::initializer_list<OnnxSetting> settings) {
  OnnxValue first = Add(op, inputs, extents, settings);
  const std::string second = NewName(op);
  graph_.mutable_node()->rbegin()->add_output(second);
  return {std::move(first), {second, std::move(extents)}};
}

std::string OnnxBuilder::AddTensor(const std::string& name, std::span<const int64_t> extents,
                                   std::span<const float> numbers) {
  Fill(name, onnx::TensorProto::FLOAT, extents, numbers, graph_.add_initializer());
  return name;
}

std::string OnnxBuilder::Numbers(std::vector<int64_t> extents, const std::vector<float>& numbers) {
  return AddTensor(NewName("Numbers"), extents, numbers);
}

std::string OnnxBuilder::Integers(const std::vector<int64_t>& numbers) {
  const std::string name = NewName("Numbers");
  const int64_t extents[] = {std::ssize(numbers)};
  Fill<int64_t>(name, onnx::TensorProto::INT64, extents, numbers, graph_.add_initializer());
  return name;
}

OnnxValue OnnxBuilder::WithExtents(const OnnxValue& value, const std::vector<int64_t>& extents) {
  if (value.extents == extents) return value;
  OnnxValue result = {"", extents};
  CHECK_EQ(result.size(), value.size()) << layer_;
  std::vector<int64_t> shape = {0};  // as it is: the batch
  shape.insert(shape.end(), extents.begin(), extents.end());
  return Add("Reshape", {value.name, Integers(shape)}, extents);
}

}  // namespace kumo
