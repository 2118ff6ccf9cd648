#include "common/settings/config_file.h"

#include <algorithm>
#include <utility>

#include "common/settings/option_value.h"

namespace kumo {
namespace {

// Without the comment and the blanks around the rest.
std::string_view Content(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return Trimmed(line.substr(0, i));
  }
  return Trimmed(line);
}

ConfigLine Problem(int number, std::string what) {
  return {number, ConfigLine::Kind::kProblem, "", std::move(what)};
}

ConfigLine ReadSetting(int number, const std::string& section, std::string_view content) {
  const size_t equals = content.find('=');
  const std::string key(Trimmed(content.substr(0, equals)));
  if (equals == std::string_view::npos || key.empty()) {
    return Problem(number,
                   "'" + std::string(content) + "' is neither a [section] nor `key = value`");
  }
  const std::string full_key = section.empty() ? key : section + "." + key;
  Result<std::string> value = Unquoted(Trimmed(content.substr(equals + 1)));
  if (!value.ok()) return Problem(number, full_key + ": " + value.status().message());
  return {number, ConfigLine::Kind::kSetting, full_key, *std::move(value)};
}

}  // namespace

Result<std::string> Unquoted(std::string_view value) {
  if (value.starts_with('\'')) {
    return InvalidArgument("quotes are double quotes (\"), not as in " + std::string(value));
  }
  const auto quotes = std::count(value.begin(), value.end(), '"');
  if (quotes == 0) return std::string(value);
  if (quotes % 2 != 0) {
    return InvalidArgument("the quote in " + std::string(value) + " is not closed");
  }
  if (quotes > 2 || !value.starts_with('"') || !value.ends_with('"')) {
    return InvalidArgument("quotes must stand around the whole value, not as in " +
                           std::string(value));
  }
  return std::string(value.substr(1, value.size() - 2));
}

std::string Quoted(const std::string& value) {
  const bool plain =
      value.find('#') == std::string::npos && Trimmed(value) == value && !value.starts_with('\'');
  return plain ? value : "\"" + value + "\"";
}

std::vector<ConfigLine> ReadConfigLines(std::string_view text) {
  std::vector<ConfigLine> lines;
  std::string section;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = Content(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty()) continue;
    if (content.front() == '[' && content.back() == ']') {
      section = std::string(content.substr(1, content.size() - 2));
      lines.push_back({number, ConfigLine::Kind::kSection, section, ""});
    } else {
      lines.push_back(ReadSetting(number, section, content));
    }
  }
  return lines;
}

}  // namespace kumo
