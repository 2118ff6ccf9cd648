// Environment variables in the paths of experiment files: "~/data", "${SCRATCH}/mnist".
//
// Values and pure functions; thread-safe. Only main reads the environment: it hands it in.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace kumo {

// By name.
using Variables = std::map<std::string, std::string, std::less<>>;

// environment: "NAME=value" each, the last entry null; what main finds in `environ`.
Variables VariablesOf(const char* const* environment);

// "" when it is not set.
std::string ValueOf(const Variables& variables, std::string_view name);

// `path` with a leading "~" (alone or before '/') replaced by $HOME, each "${NAME}" by that
// variable's value and each "$$" by '$'. InvalidArgument names a variable that is not set, and what
// cannot be meant: "~somebody", "$NAME" without braces, "${" without an end.
Result<std::string> Expanded(std::string_view path, const Variables& variables);

// What Expanded gives `path` for, whatever the variables, where it begins with no '~'.
std::string WithoutVariables(std::string_view path);

}  // namespace kumo
