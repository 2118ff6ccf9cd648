#include "data/readers/image_set_names.h"

namespace kumo {
namespace {

std::string_view WithoutBlanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<ImageSetName> SplitImageSets(std::string_view text) {
  std::vector<ImageSetName> sets;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view one = WithoutBlanks(text.substr(0, comma));
    const size_t colon = one.rfind(':');
    const bool named = colon != one.npos && one.find('/', colon) == one.npos;
    ImageSetName& set = sets.emplace_back();
    set.path = one.substr(0, named ? colon : one.npos);
    if (named) set.set = one.substr(colon + 1);
    if (comma == text.npos) return sets;
    text.remove_prefix(comma + 1);
  }
}

std::string JoinImageSets(const std::vector<ImageSetName>& sets) {
  std::string text;
  for (const ImageSetName& set : sets) text += (text.empty() ? "" : ",") + set.text();
  return text;
}

}  // namespace kumo
