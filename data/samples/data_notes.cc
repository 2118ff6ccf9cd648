#include "data/samples/data_notes.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "common/base/printable.h"
#include "common/base/text.h"

namespace kumo {
namespace {

constexpr size_t kNamed = 4;         // names or endings in a list
constexpr size_t kEndingBytes = 12;  // longer ones are no endings, nor are numbers

// " (a, b, c, d, ...)".
std::string InBrackets(std::span<const std::string> words) {
  const auto named = words.first(std::min(words.size(), kNamed));
  return " (" + Join(named) + (words.size() > kNamed ? ", ..." : "") + ")";
}

std::string InBrackets(const std::map<std::string, int64_t>& endings) {
  std::vector<std::pair<std::string, int64_t>> sorted(endings.begin(), endings.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           &std::pair<std::string, int64_t>::second);
  std::vector<std::string> words;
  for (const auto& [ending, count] : sorted) {
    words.push_back((ending.empty() ? "no ending" : ending) + " " + std::to_string(count));
  }
  return InBrackets(words);
}

}  // namespace

void LeftOut::AddFile(const std::string& path) {
  ++files;
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  std::string ending;
  if (dot != path.npos && (slash == path.npos || dot > slash)) {
    ending = LowerCase(Printable(path.substr(dot)));
  }
  const bool has_letter =
      std::ranges::any_of(ending, [](unsigned char c) { return std::isalpha(c) != 0; });
  if (!has_letter || ending.size() > kEndingBytes) ending.clear();
  ++endings[ending];
}

bool LeftOut::empty() const {
  return files == 0 && hidden_files == 0 && hidden_folders == 0 && unusable.empty() &&
         empty_classes.empty();
}

std::string LeftOut::Text() const {
  if (empty()) return "";
  std::vector<std::string> parts;
  if (files > 0) parts.push_back(Counted(files, "file", "files") + InBrackets(endings));
  if (hidden_files > 0) parts.push_back(Counted(hidden_files, "hidden file", "hidden files"));
  if (hidden_folders > 0)
    parts.push_back(Counted(hidden_folders, "hidden folder", "hidden folders"));
  if (!unusable.empty()) {
    parts.push_back(Counted(std::ssize(unusable), "unusable entry", "unusable entries") +
                    InBrackets(unusable));
  }
  if (!empty_classes.empty()) {
    parts.push_back(Counted(std::ssize(empty_classes), "class", "classes") + " without images" +
                    InBrackets(empty_classes));
  }
  return "left out: " + Join(parts);
}

std::vector<std::string> DataNotes::Lines() const {
  std::vector<std::string> lines;
  if (!left_out.empty()) lines.push_back(left_out.Text());
  lines.insert(lines.end(), remarks.begin(), remarks.end());
  return lines;
}

}  // namespace kumo
