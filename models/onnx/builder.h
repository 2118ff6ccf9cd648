// An ONNX graph while it is written: nodes, and constants in them. What each op becomes says
// registry.h.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "proto/onnx.pb.h"

namespace kumo {

// An array that nodes read: by its name, and its extents, the batch's, which is free, left out.
struct OnnxValue {
  std::string name;
  std::vector<int64_t> extents;

  int64_t size() const;  // numbers of one sample
};

// A setting of a node.
struct OnnxSetting {
  OnnxSetting(const char* setting, int64_t value);
  OnnxSetting(const char* setting, float value);
  OnnxSetting(const char* setting, std::vector<int64_t> values);

  onnx::AttributeProto attribute;
};

class OnnxBuilder {
 public:
  // The graph is borrowed for life.
  explicit OnnxBuilder(onnx::GraphProto* graph) : graph_(*graph) {}

  // From now on what is added belongs to the layer of that name: names begin with it.
  void Begin(const std::string& layer);

  // A node of one output of these extents; its output.
  OnnxValue Add(const char* op, const std::vector<std::string>& inputs,
                std::vector<int64_t> extents, std::initializer_list<OnnxSetting> settings = {});
  // A constant of that name; the name.
  std::string AddTensor(const std::string& name, std::span<const int64_t> extents,
                        std::span<const float> numbers);
  // Constants of the layer's own; their names.
  std::string Numbers(std::vector<int64_t> extents, const std::vector<float>& numbers);
  std::string Number(float number) { return Numbers({}, {number}); }
  std::string WholeNumbers(const std::vector<int64_t>& numbers);

  // The same numbers with other extents, of as many numbers; as it is where it has them.
  OnnxValue WithExtents(const OnnxValue& value, const std::vector<int64_t>& extents);

 private:
  std::string NewName(const std::string& what);

  onnx::GraphProto& graph_;
  std::string layer_;
  int names_ = 0;  // of the layer
};

}  // namespace kumo
