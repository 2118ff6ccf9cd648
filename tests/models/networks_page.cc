#include "tests/models/networks_page.h"

#include <algorithm>
#include <fstream>
#include <regex>

namespace kumo {
namespace {

std::string Unquoted(std::string cell) {
  std::erase(cell, '`');
  const size_t begin = cell.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin);
}

// "| `stride` | 1 | 1 .. 64 | Rows |"
FieldRow ReadRow(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t at = 1, end = 0; (end = line.find('|', at)) != std::string::npos; at = end + 1) {
    cells.push_back(Unquoted(line.substr(at, end - at)));
  }
  cells.resize(3);
  return {cells[0], cells[1], cells[2]};
}

// "1x28x28", "16x8" or "500"
std::string InputOf(const std::string& shape) {
  std::smatch parts;
  if (std::regex_match(shape, parts, std::regex(R"((\d+)x(\d+))"))) {
    return "input { extents: " + parts[1].str() + " extents: " + parts[2].str() + " }\n";
  }
  if (!std::regex_match(shape, parts, std::regex(R"((\d+)x(\d+)x(\d+))"))) {
    return "input { channels: " + shape + " height: 1 width: 1 }\n";
  }
  return "input { channels: " + parts[1].str() + " height: " + parts[2].str() +
         " width: " + parts[3].str() + " }\n";
}

}  // namespace

std::vector<std::string> NetworksSection::comments() const {
  static const std::regex kComment(R"(# (\S+ -> \S+|\d+ classes|\S+ numbers)\n)");
  std::vector<std::string> found;
  for (std::sregex_iterator it(example.begin(), example.end(), kComment), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

bool NetworksSection::has_loss() const {
  const std::vector<std::string> found = comments();
  return !found.empty() &&
         (found.back().ends_with(" classes") || found.back().ends_with(" numbers"));
}

std::string NetworksSection::network() const {
  if (example.find("input {") != std::string::npos) return example;
  const std::vector<std::string> shapes = comments();
  if (shapes.empty()) return example;
  std::string text =
      "name: \"page\"\n" + InputOf(shapes[0].substr(0, shapes[0].find(' '))) + example;
  if (has_loss()) return text;
  return text +
         "layers { name: \"page_end\" fully_connected { outputs: 3 } }\n"
         "layers { name: \"page_loss\" softmax_cross_entropy {} }\n";
}

std::vector<NetworksSection> ReadNetworksPage(const std::string& path) {
  std::ifstream file(path);
  std::vector<NetworksSection> sections;
  std::string line;
  bool in_example = false;
  while (std::getline(file, line)) {
    const bool fence = line.starts_with("```");
    if (fence) in_example = line == "```pbtxt";
    if (!fence && in_example && !sections.empty()) sections.back().example += line + "\n";
    if (in_example) continue;
    if (line.starts_with("## ")) sections.push_back({line.substr(3), "", {}, ""});
    if (sections.empty()) continue;
    if (line.starts_with("### ")) {
      sections.push_back({sections.back().chapter, Unquoted(line.substr(4)), {}, ""});
    }
    if (line.starts_with("| `")) sections.back().rows.push_back(ReadRow(line));
  }
  return sections;
}

}  // namespace kumo
