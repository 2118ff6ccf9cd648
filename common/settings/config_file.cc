#include "common/settings/config_file.h"

#include <utility>

#include "common/base/text.h"
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

bool BeginsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsInName(char c) { return BeginsName(c) || (c >= '0' && c <= '9'); }

// The name at the start of `text`; "" if there is none.
std::string_view NameAtStart(std::string_view text) {
  if (text.empty() || !BeginsName(text.front())) return "";
  size_t end = 1;
  while (end < text.size() && IsInName(text[end])) ++end;
  return text.substr(0, end);
}

Result<std::string> Lookup(std::string_view name, const Variables& variables) {
  const auto found = variables.find(name);
  if (found != variables.end()) return found->second;
  return InvalidArgument("the environment variable " + std::string(name) + " is not set");
}

// Removes "$$" or "${NAME}" from the start of *text, and returns its replacement.
Result<std::string> TakeDollar(std::string_view* text, const Variables& variables) {
  const std::string_view rest = text->substr(1);
  if (rest.starts_with('{')) {
    const std::string_view name = NameAtStart(rest.substr(1));
    if (name.empty() || !rest.substr(1 + name.size()).starts_with('}')) {
      return InvalidArgument("'${' must be followed by a variable's name and '}'");
    }
    *text = rest.substr(name.size() + 2);
    return Lookup(name, variables);
  }
  if (const std::string_view name = NameAtStart(rest); !name.empty()) {
    return InvalidArgument("write ${" + std::string(name) +
                           "}, with braces; a '$' that is part of a name is written $$");
  }
  *text = rest.substr(rest.starts_with('$') ? 1 : 0);
  return std::string("$");
}

}  // namespace

Result<std::string> Unquoted(std::string_view value) {
  if (value.starts_with('\'')) {
    const size_t end = value.find('\'', 1);
    const std::string_view rest = end == value.npos ? "" : value.substr(end + 1);
    if (!rest.starts_with(' ') && !rest.starts_with('\t')) {
      return InvalidArgument("quotes around a value must be double quotes (\"), not as in " +
                             std::string(value));
    }
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
    const std::string_view content = Content(TakeLine(&text));
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

Variables VariablesOf(const char* const* environment) {
  Variables variables;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

std::string ValueOf(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

Result<std::string> Expanded(std::string_view path, const Variables& variables) {
  std::string expanded;
  if (path.starts_with('~')) {
    const std::string_view user = path.substr(1, path.find('/') - 1);
    if (!user.empty()) {
      return InvalidArgument("~" + std::string(user) +
                             " is not looked up; write ~/... or the folder's name in full");
    }
    KUMO_ASSIGN_OR_RETURN(expanded, Lookup("HOME", variables));
    path.remove_prefix(1);
  }
  while (!path.empty()) {
    const size_t dollar = path.find('$');
    expanded += path.substr(0, dollar);
    path.remove_prefix(dollar == std::string_view::npos ? path.size() : dollar);
    if (path.empty()) break;
    KUMO_ASSIGN_OR_RETURN(const std::string part, TakeDollar(&path, variables));
    expanded += part;
  }
  return expanded;
}

std::string WithoutVariables(std::string_view path) {
  std::string value;
  for (const char c : path) value += c == '$' ? "$$" : std::string(1, c);
  return value;
}

}  // namespace kumo
