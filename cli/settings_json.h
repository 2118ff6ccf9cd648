// Settings as JSON, numbers as numbers: what `kumo options`, `kumo check` and programs share.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "common/base/json.h"
#include "common/settings/parser.h"

namespace kumo {

// A value that is JSON already.
struct RawJson {
  std::string text;
};
inline std::string ToJson(const RawJson& value) { return value.text; }

JsonArray ToJsonArray(const std::vector<std::string>& texts);

// Every setting by its key: {"sync.block":{"value":50,"origin":"default"},...}.
JsonFields SettingsJson(const Experiment& experiment, const Origins& origins);

// Every row of the option table: key, type, default, unit, allowed values, help.
JsonArray OptionsJson();

}  // namespace kumo
