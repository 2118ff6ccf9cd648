// Names of layers for an ONNX file that is imported: those that the exporter kept. Tensors have
// PyTorch's ("layer1.0.conv1.weight"), and so have nodes, as scopes ("/layer1/layer1.0/relu/Relu")
// or in their metadata; Kumo's nodes begin with the layer ("conv1/Conv").
//
// Owned and used by one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/onnx/import_graph.h"
#include "proto/onnx.pb.h"

namespace kumo {

class LayerNames {
 public:
  explicit LayerNames(const onnx::ModelProto& model);

  // A valid name for a layer that nobody has yet. kind: its kind, for a layer without another name.
  std::string NameOf(const ImportNode& node, const std::string& kind);
  // The name is taken.
  void Reserve(const std::string& name) { taken_.insert(name); }
  // A valid name like this one for an input, which no other input and no layer has.
  std::string NameOfInput(const std::string& name);

 private:
  // The name, with a number behind it if it is taken; it is taken then.
  std::string Take(const std::string& name);
  void AddContainersOf(const std::string& path);

  bool by_kumo_;
  std::set<std::string> containers_;  // modules that have modules inside: "layer1", "layer1.0"
  std::set<std::string> taken_;
  std::map<std::string, int> numbers_;  // behind names that were wanted again
};

// `text` as the name of a network or a layer: other characters than letters, digits, '_' and, if
// `dots`, '.' become '_'. At most 100 characters; "" if nothing is left.
std::string ValidName(const std::string& text, bool dots);

}  // namespace kumo
