#include "cli/new/experiment_lines.h"

namespace kumo {
namespace {

constexpr size_t kCommentColumn = 26;

}  // namespace

void ExperimentLines::Section(const std::string& name) { text_ += "\n[" + name + "]\n"; }

void ExperimentLines::Set(const std::string& key, const std::string& value,
                          const std::string& why) {
  std::string line = key + " = " + value;
  if (!why.empty()) {
    if (line.size() < kCommentColumn) line.resize(kCommentColumn, ' ');
    line += "  # " + why;
  }
  text_ += line + "\n";
}

}  // namespace kumo
