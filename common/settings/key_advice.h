// Advice for a key or a section that no setting has: the settings that were meant, by spelling, by
// another section, and by the fields' other words (OptionTable).
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kumo {

// "; did you mean block.momentum or optimiser.momentum?"; "" if none is near.
std::string KeyAdvice(std::string_view key);
std::string SectionAdvice(std::string_view section);

// The settings with this name or other word, which may have dashes: "--batch-size" is
// sync.minibatch. Settings of a similar name do not count.
std::vector<std::string> SettingsNamed(std::string_view name);

}  // namespace kumo
