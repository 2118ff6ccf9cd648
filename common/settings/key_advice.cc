#include "common/settings/key_advice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/did_you_mean.h"
#include "common/settings/option_words.h"

namespace kumo {
namespace {

std::vector<std::string> MeantSections(std::string_view section, const OptionTable& table) {
  std::vector<KnownName> known;
  for (const std::string& name : table.sections()) {
    known.push_back({name, WordsFor(name)});
  }
  std::vector<std::string> names;
  for (const size_t i : Meant(section, known)) names.push_back(table.sections()[i]);
  return names;
}

// By the name alone: two sections have a "momentum".
std::vector<std::string> KeysNamed(std::string_view name, const OptionTable& table) {
  std::vector<KnownName> known;
  for (const Option& option : table.options()) {
    known.push_back(
        {std::string_view(option.key).substr(option.section().size() + 1), option.also});
  }
  std::vector<std::string> keys;
  for (const size_t i : Meant(name, known)) keys.push_back(table.options()[i].key);
  return keys;
}

// Those of `keys` that are in one of `sections`; where that is none, all of them.
std::vector<std::string> Preferred(const std::vector<std::string>& keys,
                                   const std::vector<std::string>& sections) {
  std::vector<std::string> preferred;
  for (const std::string& key : keys) {
    const bool in_one = std::any_of(sections.begin(), sections.end(), [&](const auto& section) {
      return key.starts_with(section + ".");
    });
    if (in_one) preferred.push_back(key);
  }
  return preferred.empty() ? keys : preferred;
}

}  // namespace

std::string KeyAdvice(std::string_view key, const OptionTable& table) {
  const size_t dot = key.rfind('.');
  const std::string_view section = dot == std::string_view::npos ? "" : key.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? key : key.substr(dot + 1);
  if (name == "include") return "; `include = FILE` stands before the first [section] of a file";
  const std::vector<std::string> named = KeysNamed(name, table);
  if (named.empty()) return DidYouMean(key, table.keys());
  return DidYouMean(Preferred(named, MeantSections(section, table)));
}

std::string SectionAdvice(std::string_view section, const OptionTable& table) {
  return DidYouMean(MeantSections(section, table));
}

}  // namespace kumo
