#include "models/onnx/layer_names.h"

#include <cctype>
#include <sstream>

namespace kumo {
namespace {

constexpr size_t kLongest = 100;

// "layer1.0.conv1" for "layer1.0.conv1.weight"; "" for a tensor that has no layer's name.
std::string OwnerOf(const std::string& tensor) {
  const size_t dot = tensor.rfind('.');
  if (dot == tensor.npos || tensor.find("::") != tensor.npos) return "";
  return tensor.substr(0, dot);
}

// The module before the last entry of "['', 'layer1', 'layer1.0', 'layer1.0.relu', 'relu_1']",
// which is the node's own; "" if there is none.
std::string ModuleIn(const std::string& scopes) {
  std::string module, last, entry;
  bool inside = false;
  for (const char c : scopes) {
    if (c != '\'' && inside) entry += c;
    if (c != '\'') continue;
    inside = !inside;
    if (inside) continue;
    module = last;
    last = entry;
    entry.clear();
  }
  return module;
}

// "layer1.0.relu" for "/layer1/layer1.0/relu/Relu": a part that repeats the one before it continues
// it. Newer exporters write the modules as metadata. "" for a node without scopes.
std::string PathOf(const onnx::NodeProto& from) {
  for (const onnx::StringStringEntryProto& entry : from.metadata_props()) {
    if (entry.key() == "pkg.torch.onnx.name_scopes") return ModuleIn(entry.value());
  }
  const std::string& node = from.name();
  if (!node.starts_with('/')) return "";
  std::string path, part;
  std::istringstream parts(node.substr(1, node.rfind('/') == 0 ? 0 : node.rfind('/') - 1));
  std::string last;
  while (std::getline(parts, part, '/')) {
    if (!last.empty() && part.starts_with(last + ".")) {
      path.replace(path.size() - last.size(), last.size(), part);
    } else {
      path += (path.empty() ? "" : ".") + part;
    }
    last = part;
  }
  return path;
}

}  // namespace

std::string ValidName(const std::string& text, bool dots) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    const bool dot = dots && c == '.' && !name.empty() && name.back() != '.';
    name += plain || dot ? c : '_';
  }
  name = name.substr(0, kLongest);
  while (name.ends_with('.')) name.pop_back();
  return name;
}

LayerNames::LayerNames(const onnx::ModelProto& model)
    : by_kumo_(model.producer_name() == "kumo"), taken_({"input", "loss"}) {
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    AddContainersOf(OwnerOf(tensor.name()));
    taken_.insert(tensor.name());
  }
  for (const onnx::NodeProto& node : model.graph().node()) AddContainersOf(PathOf(node));
}

void LayerNames::AddContainersOf(const std::string& path) {
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
    containers_.insert(path.substr(0, dot));
  }
}

std::string LayerNames::NameOf(const ImportNode& node, const std::string& kind) {
  std::vector<std::string> candidates;
  const std::string of_node = node.from != nullptr ? node.from->name() : "";
  if (by_kumo_) {
    candidates.push_back(of_node.substr(0, of_node.rfind('/')));
  } else {
    for (const ImportTensor& tensor : node.tensors) {
      candidates.push_back(OwnerOf(tensor.elements.name));
    }
    const std::string path = node.from != nullptr ? PathOf(*node.from) : "";
    if (path.empty() || containers_.contains(path)) {
      candidates.push_back((path.empty() ? "" : path + ".") + kind);
    } else {
      candidates.push_back(path);
    }
  }
  std::string first;
  for (const std::string& candidate : candidates) {
    const std::string name = ValidName(candidate, /*dots=*/true);
    if (name.empty()) continue;
    if (taken_.insert(name).second) return name;
    if (first.empty()) first = name;
  }
  return Take(first.empty() ? kind : first);
}

std::string LayerNames::NameOfInput(const std::string& name) {
  const std::string valid = ValidName(name, /*dots=*/false);
  return Take(valid.empty() ? "input" : valid);
}

std::string LayerNames::Take(const std::string& name) {
  if (taken_.insert(name).second) return name;
  for (int& i = ++numbers_.try_emplace(name, 1).first->second;; ++i) {
    const std::string end = "_" + std::to_string(i);
    const std::string numbered = name.substr(0, kLongest - end.size()) + end;
    if (taken_.insert(numbered).second) return numbered;
  }
}

}  // namespace kumo
