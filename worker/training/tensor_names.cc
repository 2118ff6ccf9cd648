#include "worker/training/tensor_names.h"

#include <sstream>
#include <utility>

#include "common/base/did_you_mean.h"
#include "common/base/printable.h"
#include "common/base/text_file.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestFileMib = 16;

// Of one line: its name, ours. Both empty where there is nothing on it.
Result<std::pair<std::string, std::string>> ParseLine(std::string_view line) {
  line = Trimmed(line.substr(0, line.find('#')));
  if (line.ends_with('\r')) line = Trimmed(line.substr(0, line.size() - 1));
  if (line.empty()) return std::pair<std::string, std::string>();
  const size_t equals = line.find('=');
  const std::string_view theirs = Trimmed(line.substr(0, equals));
  const std::string_view ours = equals == line.npos ? "" : Trimmed(line.substr(equals + 1));
  if (theirs.empty() || ours.empty()) {
    return InvalidArgument("must be `its name = ours`, is \"" + Printable(line) + "\"");
  }
  return std::pair<std::string, std::string>(theirs, ours);
}

}  // namespace

TensorNames::TensorNames(const ParameterLayout& layout) {
  for (const TensorSpec& tensor : layout.tensors()) {
    tensors_[tensor.name] = static_cast<int>(names_.size());
    names_.push_back(tensor.name);
  }
}

Result<TensorNames> TensorNames::Read(const std::string& path, const ParameterLayout& layout) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (!text.ok()) return text.status().WithContext(path);
  const TensorNames own(layout);
  std::map<int, std::pair<std::string, int>> said;  // by tensor: its name there, and the line
  std::map<std::string, int> lines;                 // by names there
  std::istringstream stream(*text);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    const std::string place = path + ":" + std::to_string(number);
    auto parsed = ParseLine(line);
    if (!parsed.ok()) return parsed.status().WithContext(place);
    const auto& [theirs, ours] = *parsed;
    if (ours.empty()) continue;
    const int tensor = own.Find(ours);
    if (tensor < 0) {
      return InvalidArgument(place + ": the network has no tensor " + Printable(ours) +
                             DidYouMean(ours, own.names_));
    }
    const auto [first, is_new] = said.emplace(tensor, std::pair(theirs, number));
    const auto [before, is_new_there] = lines.emplace(theirs, number);
    if (is_new && is_new_there) continue;
    return InvalidArgument(place + ": " + Printable(is_new ? theirs : ours) +
                           " has a name already, in line " +
                           std::to_string(is_new ? before->second : first->second.second));
  }
  TensorNames names = own;
  for (const auto& [tensor, name_and_line] : said) names.names_[tensor] = name_and_line.first;
  names.tensors_.clear();
  // What the file says goes before what is called the same by chance.
  for (const auto& [tensor, name_and_line] : said) names.tensors_[name_and_line.first] = tensor;
  for (size_t i = 0; i < names.names_.size(); ++i) {
    names.tensors_.emplace(names.names_[i], static_cast<int>(i));
  }
  return names;
}

int TensorNames::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? -1 : found->second;
}

}  // namespace kumo
