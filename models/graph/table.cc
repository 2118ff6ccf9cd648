#include "models/graph/table.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include "common/base/text.h"
#include "common/base/text_table.h"
#include "common/job/fields.h"
#include "models/backend/memory_ledger.h"

namespace kumo {
namespace {

constexpr int kIndent = 2;

std::string Millions(int64_t products) {
  if (products == 0) return "";
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", static_cast<double>(products) / 1e6);
  return text;
}

std::string Short(float number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", static_cast<double>(number));
  return text;
}

std::string Both(const std::string& kind, const std::string& detail) {
  return detail.empty() ? kind : kind + " " + detail;
}

// Names of the layers that a node reads; "" if it reads only the layer before it.
std::string InputsOf(const std::vector<int>& inputs, int before,
                     const std::map<int, std::string>& names) {
  if (inputs == std::vector<int>{before}) return "";
  std::string text;
  for (const int input : inputs) text += (text.empty() ? "" : ", ") + names.at(input);
  return text;
}

}  // namespace

std::string TableOf(const Graph& graph, const std::function<int64_t(const Shape&)>& bytes_of,
                    int columns) {
  const std::vector<TextColumn> header = {{"layer", false},  {"kind", false}, {"reads", false},
                                          {"output", false}, {"parameters"},  {"M products"},
                                          {"memory"}};
  std::vector<std::vector<std::string>> rows;
  std::map<int, std::string> names;  // of values
  for (size_t i = 0; i < graph.inputs.size(); ++i) names[static_cast<int>(i)] = graph.inputs[i];
  std::map<int, std::string> owners;  // of tensors
  int before = 0;
  for (const Node& node : graph.nodes) {
    const Shape& output = graph.values[node.outputs[0]].shape;
    std::string parameters = std::to_string(graph.parameters_of(node));
    if (!node.parameters.empty() && !graph.trains(node)) parameters += " frozen";
    if (!node.parameters.empty()) {
      const auto [owner, own] = owners.try_emplace(node.parameters[0], node.name);
      if (!own) parameters = owner->second + "'s";
    }
    rows.push_back({node.name, Both(node.kind, node.detail), InputsOf(node.inputs, before, names),
                    output.ToString(), parameters, Millions(ProductsOf(node.spec)),
                    Megabytes(bytes_of(output))});
    before = node.outputs[0];
    names[before] = node.name;
  }
  for (const LossNode& loss : graph.losses) {
    std::string detail = loss.detail;
    if (loss.weight != 1.0f) {
      detail += (detail.empty() ? "weight " : ", weight ") + Short(loss.weight);
    }
    const Target& target = graph.targets[loss.targets[0]];
    rows.push_back(
        {loss.name, Both(loss.kind, detail), InputsOf(loss.inputs, before, names),
         target.classes > 0 ? std::to_string(target.classes) : ExtentsText(target.extents), "0", "",
         ""});
  }
  return Indented(FormatTextTable(header, rows, columns > 0 ? columns - kIndent : 0), kIndent);
}

}  // namespace kumo
