// Syntax of experiment files: [section] lines, `key = value` lines, comments after '#', values in
// double quotes (a '#' and blanks between them belong to the value), and in paths environment
// variables: "~/data", "${SCRATCH}/mnist".
//
// Values and pure functions; thread-safe. Only main reads the environment, and hands it in.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// A line that is neither empty nor a comment.
struct ConfigLine {
  enum class Kind { kSection, kSetting, kProblem };
  int number = 0;  // in the file, counted from 1
  Kind kind = Kind::kSetting;
  std::string name;   // the section's, or the key with its section: "sync.block"
  std::string value;  // kSetting: without quotes; kProblem: the message
};

std::vector<ConfigLine> ReadConfigLines(std::string_view text);

// A value without the double quotes around it. InvalidArgument when a quote is not closed or stands
// inside the value, and for a value in single quotes. Single quotes that begin a longer value, as
// of worker.command = '/my env/python' train.py, belong to it.
Result<std::string> Unquoted(std::string_view value);

// A value as it is written to a file: in quotes if it needs them. Requires a value without quotes.
std::string Quoted(const std::string& value);

// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;

// environment: "NAME=value" each, the last entry null: main's `environ`.
Variables VariablesOf(const char* const* environment);

// "" if it is not set.
std::string ValueOf(const Variables& variables, std::string_view name);

// `path` with a leading "~" (alone or before '/') replaced by $HOME, each "${NAME}" by that
// variable's value and each "$$" by '$'. InvalidArgument names a variable that is not set, and a
// form that is not read: "~somebody", "$NAME" without braces, "${" without an end.
Result<std::string> Expanded(std::string_view path, const Variables& variables);

// The text for which Expanded gives `path`, whatever the variables. Requires that `path` does not
// begin with '~'.
std::string WithoutVariables(std::string_view path);

}  // namespace kumo
