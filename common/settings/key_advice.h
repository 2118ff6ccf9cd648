// What a key or a section that experiment files do not have was most likely meant to be: by
// spelling, by another section, and by what else the field calls it (the option table's `also`).
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/settings/option_table.h"

namespace kumo {

// "; did you mean block.momentum or optimiser.momentum?", or "" when nothing is near.
std::string KeyAdvice(std::string_view key, const OptionTable& table);
std::string SectionAdvice(std::string_view section, const OptionTable& table);

}  // namespace kumo
