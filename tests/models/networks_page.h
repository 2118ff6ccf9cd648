// docs/networks.md as data: its sections, their tables of fields and their examples.
#pragma once

#include <string>
#include <vector>

namespace kumo {

struct FieldRow {
  std::string field;
  std::string fallback;  // "required", "none" or a value; quotes of code are left out
  std::string allowed;
};

struct NetworksSection {
  std::string chapter;  // "Layers"
  std::string name;     // "convolution"; empty: what stands before a chapter's first section
  std::vector<FieldRow> rows;
  std::string example;  // in text format; of a network, or of layers in the middle of one

  // What the example's comments say, layer by layer: "20x24x24 -> 20x12x12", "10 classes".
  std::vector<std::string> comments() const;
  // Whether the last of them is a loss, so that the example is the end of a network.
  bool has_loss() const;
  // The example as a whole network: with an input and an end where it has none.
  std::string network() const;
};

// An empty page where the file cannot be read.
std::vector<NetworksSection> ReadNetworksPage(const std::string& path);

}  // namespace kumo
