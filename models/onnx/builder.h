// Builder of an ONNX graph: nodes, and constants in them. forms.h has the form of each op.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/onnx.pb.h"

namespace kumo {

// An array that nodes read: its name, and its extents without the free extent of the batch.
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
  OnnxSetting(const char* setting, std::string word);

  onnx::AttributeProto attribute;
};

class OnnxBuilder {
 public:
  // The graph is borrowed for life.
  explicit OnnxBuilder(onnx::GraphProto* graph) : graph_(*graph) {}

  // Nodes and constants added from now on belong to the layer of that name: their names begin with
  // it.
  void Begin(const std::string& layer);

  // A node of one output of these extents; its output.
  OnnxValue Add(const char* op, const std::vector<std::string>& inputs,
                std::vector<int64_t> extents, std::initializer_list<OnnxSetting> settings = {});
  // A node of two outputs of these extents.
  std::pair<OnnxValue, OnnxValue> AddPair(const char* op, const std::vector<std::string>& inputs,
                                          std::vector<int64_t> extents,
                                          std::initializer_list<OnnxSetting> settings = {});
  // A constant of that name; the name.
  std::string AddTensor(const std::string& name, std::span<const int64_t> extents,
                        std::span<const float> numbers);
  // Constants of the layer's own; their names.
  std::string Numbers(std::vector<int64_t> extents, const std::vector<float>& numbers);
  std::string Number(float number) { return Numbers({}, {number}); }
  std::string Integers(const std::vector<int64_t>& numbers);

  // The same numbers with other extents, of as many numbers; unchanged if the value has these
  // extents.
  OnnxValue WithExtents(const OnnxValue& value, const std::vector<int64_t>& extents);

 private:
  std::string NewName(const std::string& what);

  onnx::GraphProto& graph_;
  std::string layer_;
  int names_ = 0;  // of the layer
};

}  // namespace kumo
