#include "models/graph/table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include "common/job/fields.h"
#include "models/backend/memory_ledger.h"

namespace kumo {
namespace {

constexpr size_t kColumns = 8;
constexpr size_t kFirstNumber = 5;  // columns from here on are aligned to the right
using Row = std::array<std::string, kColumns>;

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

std::string WithAlignedColumns(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths = {};  // 0: an empty column
  for (size_t r = 1; r < rows.size(); ++r) {
    for (size_t c = 0; c < kColumns; ++c) {
      if (!rows[r][c].empty())
        widths[c] = std::max({widths[c], rows[r][c].size(), rows[0][c].size()});
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      if (widths[c] == 0) continue;
      const std::string blanks(widths[c] - row[c].size(), ' ');
      line += (line.empty() ? "" : "  ") + (c < kFirstNumber ? row[c] + blanks : blanks + row[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
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

std::string TableOf(const Graph& graph, const std::function<int64_t(const Shape&)>& bytes_of) {
  std::vector<Row> rows = {
      {"layer", "kind", "", "reads", "output", "parameters", "products (M)", "memory"}};
  std::map<int, std::string> names;  // of values
  for (size_t i = 0; i < graph.inputs.size(); ++i) names[static_cast<int>(i)] = graph.inputs[i];
  std::map<int, std::string> owners;  // of tensors
  int before = 0;
  for (const Node& node : graph.nodes) {
    const Shape& output = graph.values[node.outputs[0]].shape;
    std::string parameters = std::to_string(graph.parameters_of(node));
    if (!node.parameters.empty()) {
      const auto [owner, own] = owners.try_emplace(node.parameters[0], node.name);
      if (!own) parameters = owner->second + "'s";
    }
    rows.push_back({node.name, node.kind, node.detail, InputsOf(node.inputs, before, names),
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
    const Label& label = graph.label;
    rows.push_back({loss.name, loss.kind, detail, InputsOf({loss.scores}, before, names),
                    label.classes > 0 ? std::to_string(label.classes) : ExtentsText(label.extents),
                    "0", "", ""});
  }
  return WithAlignedColumns(rows);
}

}  // namespace kumo
