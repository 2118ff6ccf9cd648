#include "data/readers/image_set_names.h"

#include "common/base/text.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {}  // namespace

std::vector<ImageSetName> SplitImageSets(std::string_view text) {
  std::vector<ImageSetName> sets;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view one = Trimmed(text.substr(0, comma));
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
