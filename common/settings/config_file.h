// The syntax of experiment files: [section] lines, `key = value` lines, comments after '#'. A value
// may stand in double quotes, which are taken off; a '#' and blanks between them belong to it.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// A line that says something.
struct ConfigLine {
  enum class Kind { kSection, kSetting, kProblem };
  int number = 0;  // in the file, counted from 1
  Kind kind = Kind::kSetting;
  std::string name;   // the section's, or the key with its section: "sync.block"
  std::string value;  // kSetting: without quotes; kProblem: what is wrong
};

std::vector<ConfigLine> ReadConfigLines(std::string_view text);

// A value without the quotes around it. InvalidArgument when a quote is not closed or stands inside
// the value.
Result<std::string> Unquoted(std::string_view value);

// The other way round, for a value that is written to a file: in quotes where it needs them.
// Requires that there is no quote in it.
std::string Quoted(const std::string& value);

}  // namespace kumo
