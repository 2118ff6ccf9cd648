// Settings as JSON, with numbers as numbers: for `kumo options`, `kumo check` and programs.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "common/base/json.h"
#include "common/settings/parser.h"

namespace kumo {

// A JSON text as a value.
struct RawJson {
  std::string text;
};
inline std::string ToJson(const RawJson& value) { return value.text; }

JsonArray ToJsonArray(const std::vector<std::string>& texts);

// All settings by key: {"sync.block":{"value":50,"origin":"default"},...}.
JsonFields SettingsJson(const Experiment& experiment, const Origins& origins);

// All rows of the option table: key, type, default, unit, allowed values, help.
JsonArray OptionsJson();

}  // namespace kumo
