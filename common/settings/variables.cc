#include "common/settings/variables.h"

namespace kumo {
namespace {

bool BeginsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsInName(char c) { return BeginsName(c) || (c >= '0' && c <= '9'); }

// The name that `text` begins with; "" where that is none.
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

// Takes what stands for '$' and what is behind it off *text.
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
