#include "cli/new_experiment.h"

#include <cctype>

#include "common/base/terminal.h"
#include "common/base/text.h"
#include "common/settings/config_file.h"
#include "common/settings/option_pages.h"
#include "common/settings/option_table.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

constexpr int kColumns = 98;  // of a comment, without "# "
constexpr char kNetworkFile[] = "network.file";

// The text as a comment.
std::string Comment(const std::string& text) {
  const std::string folded = Folded(text, kColumns);
  std::string comment;
  for (std::string_view rest = folded; !rest.empty();) {
    const std::string_view line = TakeLine(&rest);
    comment += (line.empty() ? "#" : "# " + std::string(line)) + "\n";
  }
  return comment;
}

// True if a setting of the source experiment is copied.
bool IsTakenOver(const Option& option, const LoadedExperiment& from) {
  if (option.scope == Scope::kJob) return false;
  return option.key == kNetworkFile || from.origins.contains(option.key);
}

std::string Value(const Option& option, const std::string& name, const LoadedExperiment& from) {
  if (option.key == kNetworkFile) return name + ".pbtxt";
  const std::string value = option.write(from.experiment);
  return Quoted(option.base == PathBase::kNone ? value : WithoutVariables(value));
}

// A setting at its default, as a comment; a computed default has no value to show.
std::string AtDefault(const Option& option, const Experiment& defaults) {
  const std::string value = Quoted(option.write(defaults));
  return "#" + option.name() + " =" + (value.empty() ? "" : " " + value) + "\n";
}

std::string SettingLine(const Option& option, const std::string& name,
                        const LoadedExperiment& from) {
  const Experiment defaults;
  const bool set = IsTakenOver(option, from);
  std::string about = option.Help();
  const std::string limits = UnitAndAllowed(option);
  if (!limits.empty()) about += " " + limits;
  if (option.key == kNetworkFile) {
    about += "; required";
  } else if (set || !option.default_text.empty()) {
    const std::string text = DefaultText(option, defaults);
    about += "; default: " + (text.empty() ? "none" : text);
  }
  return "\n" + Comment(about) +
         (set ? option.name() + " = " + Value(option, name, from) + "\n"
              : AtDefault(option, defaults));
}

// Starts with the source's own description, so that it is the LeadingComment again.
std::string Heading(const std::string& name, const std::string& origin, const std::string& about) {
  const std::string file = name + ".conf";
  return Comment(about.empty() ? "Made from " + origin + ".\n" : about) + "\n" +
         Comment("Made from " + origin + " by kumo new; its network is in " + name +
                 ".pbtxt.\n\n  kumo check " + file +
                 "       finds problems before anything starts\n  kumo launch " + file +
                 "      trains; Ctrl-C saves, and the same command resumes\n\nA setting behind # "
                 "has its default, which is the value shown. Lists are "
                 "separated by commas.\n");
}

}  // namespace

std::string LeadingComment(std::string_view text) {
  std::string comment;
  bool in_paragraph = false;
  while (text.starts_with('#')) {
    std::string_view line = TakeLine(&text);
    line.remove_prefix(line.starts_with("# ") ? 2 : 1);
    const bool prose = !line.empty() && line[0] != ' ';
    if (prose && in_paragraph) comment.back() = ' ';
    comment += std::string(line) + "\n";
    in_paragraph = prose;
  }
  return comment;
}

std::string TitleOf(std::string_view leading_comment) {
  const std::string_view paragraph = TakeLine(&leading_comment);
  for (size_t i = 0; i + 2 < paragraph.size(); ++i) {
    // "et al. 2015" and "v1.5" do not end a sentence; a sentence begins with a capital.
    const bool sentence = paragraph[i] == '.' && paragraph[i + 1] == ' ' &&
                          std::isupper(static_cast<unsigned char>(paragraph[i + 2])) != 0;
    if (sentence || (paragraph[i] == ':' && paragraph[i + 1] == ' ')) {
      return std::string(paragraph.substr(0, i));
    }
  }
  return std::string(paragraph.substr(0, paragraph.size() - (paragraph.ends_with('.') ? 1 : 0)));
}

std::string NewExperimentText(const std::string& name, const LoadedExperiment& from,
                              const std::string& origin, const std::string& about) {
  const OptionTable& table = OptionTable::Shared();
  std::string text = Heading(name, origin, about);
  std::string section;
  for (const Option& option : table.options()) {
    if (option.section() != section) {
      section = option.section();
      text +=
          "\n" + Comment(std::string(OptionTable::SectionHelp(section))) + "[" + section + "]\n";
    }
    text += SettingLine(option, name, from);
  }
  return text;
}

}  // namespace kumo
