#include "common/settings/key_advice.h"

#include <algorithm>
#include <vector>

#include "common/base/did_you_mean.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// The keys of `keys` in one of `sections`; if there is none, all of them.
std::vector<std::string> Preferred(const std::vector<std::string>& keys,
                                   const std::vector<std::string>& sections) {
  std::vector<std::string> preferred;
  for (const std::string& key : keys) {
    const bool in_one = std::ranges::any_of(
        sections, [&](const std::string& section) { return key.starts_with(section + "."); });
    if (in_one) preferred.push_back(key);
  }
  return preferred.empty() ? keys : preferred;
}

std::vector<std::string> SectionsMeant(std::string_view section) {
  const std::vector<std::string>& sections = OptionTable::Shared().sections();
  std::vector<KnownName> known;
  for (const std::string& name : sections) known.push_back({name, OptionTable::SectionAlso(name)});
  std::vector<std::string> names;
  for (const size_t i : Meant(section, known)) names.push_back(sections[i]);
  return names;
}

// By the name alone: two sections have a "momentum".
std::vector<std::string> KeysNamed(std::string_view name, int most_edits = kMostEdits) {
  const OptionTable& table = OptionTable::Shared();
  std::vector<KnownName> known;
  for (const Option& option : table.options()) {
    known.push_back(
        {std::string_view(option.key).substr(option.section().size() + 1), option.also});
  }
  std::vector<std::string> keys;
  for (const size_t i : Meant(name, known, most_edits)) keys.push_back(table.keys()[i]);
  return keys;
}

}  // namespace

std::string KeyAdvice(std::string_view key) {
  const size_t dot = key.rfind('.');
  const std::string_view section = dot == std::string_view::npos ? "" : key.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? key : key.substr(dot + 1);
  if (name == "include") return "; `include = FILE` stands before the first [section] of a file";
  const std::vector<std::string> named = KeysNamed(name);
  if (named.empty()) return DidYouMean(key, OptionTable::Shared().keys());
  return DidYouMean(Preferred(named, SectionsMeant(section)));
}

std::vector<std::string> SettingsNamed(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  const Option* const option = OptionTable::Shared().Find(name);
  if (option != nullptr) return {option->key};
  return KeysNamed(name, /*most_edits=*/0);
}

std::string SectionAdvice(std::string_view section) { return DidYouMean(SectionsMeant(section)); }

}  // namespace kumo
