#include "common/settings/experiment_text.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/fnv.h"
#include "common/base/printable.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// A path as it stands in the text that hosts compare.
std::string ComparedValue(const Option& option, const Experiment& experiment) {
  std::string value = option.write(experiment);
  const std::filesystem::path path(value);
  if (option.path == PathKind::kBaseName ||
      (option.path == PathKind::kBaseNameIfAbsolute && path.is_absolute())) {
    return path.filename().string();
  }
  return value;
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  *text = end == std::string_view::npos ? "" : text->substr(end + 1);
  return line;
}

struct KeyValue {
  std::string_view key;
  std::string_view value;
};

KeyValue Split(std::string_view line) {
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {line, ""};
  return {line.substr(0, equals), line.substr(equals + 3)};
}

// What a peer sent, in a line with three more of them.
std::string Shown(std::string_view text) { return text.empty() ? "empty" : Printable(text, 80); }

std::string TableCell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

constexpr std::string_view kMarkdownHead =
    "# Experiment files\n"
    "\n"
    "An experiment file fixes what is trained, on what, and how; any number of workers and "
    "servers\n"
    "then gives the same weights. `kumo check FILE` tries all that a start needs and shows the "
    "settings\n"
    "that differ from their defaults, with file and line (`--verbose`: all).\n"
    "\n"
    "- Sections in brackets, `key = value` lines, comments after `#`. Lists are separated by "
    "commas.\n"
    "  A value with a `#` in it, or blanks at its ends, stands in double quotes: `key = \"a#b\"`.\n"
    "- `include = FILE` before the first section reads FILE first; a relative name is relative to "
    "the\n"
    "  including file. May be repeated; what is read later goes over what was read earlier.\n"
    "- In paths `~` is the home directory, `${NAME}` an environment variable, which must be set, "
    "and `$$`\n"
    "  stands for `$`.\n"
    "- `--set section.key=value` on any command line goes over the file, the file over what it "
    "includes,\n"
    "  that over the defaults.\n"
    "- An unknown key or a bad value is refused with file, line, the allowed range and what was "
    "most "
    "likely\n"
    "  meant, also for what the field calls otherwise (`lr`, `batch_size`).\n"
    "- Settings marked **result** are part of the experiment hash: processes that differ in one of "
    "them\n"
    "  refuse each other, and a job goes on from its checkpoints after a change (but of `job.name` "
    "or\n"
    "  `network.initial_weights`) only with `--continue` "
    "([operations.md](operations.md#stop-and-resume)). The\n"
    "  others may differ from run to run.\n"
    "\n"
    "This page is what `kumo options --markdown` prints; a test compares the two.\n";

}  // namespace

std::string ExperimentText(const Experiment& experiment) {
  static const OptionTable& table = *new OptionTable;
  std::string text;
  for (const Option& option : table.options()) {
    if (option.result) text += option.key + " = " + ComparedValue(option, experiment) + "\n";
  }
  return text;
}

std::vector<ResultSetting> ResultSettings(const Experiment& experiment) {
  std::vector<ResultSetting> settings;
  const OptionTable table;
  for (const Option& option : table.options()) {
    if (!option.result) continue;
    const std::string text = ComparedValue(option, experiment);
    ResultSetting& setting = settings.emplace_back(ResultSetting{option.key, text});
    if (option.type == OptionType::kFlag) setting.value = text == "true";
    if (option.type == OptionType::kInteger || option.type == OptionType::kNumber) {
      setting.value = std::strtod(text.c_str(), nullptr);
    }
  }
  return settings;
}

uint64_t ExperimentHash(const Experiment& experiment) {
  Fnv1a hash;
  hash.Add(ExperimentText(experiment));
  return hash.value();
}

std::string HashText(const Experiment& experiment) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(ExperimentHash(experiment)));
  return text;
}

std::string FirstDifference(std::string_view here, std::string_view there) {
  while (!here.empty() || !there.empty()) {
    const std::string_view mine = TakeLine(&here);
    const std::string_view theirs = TakeLine(&there);
    if (mine == theirs) continue;
    const KeyValue a = Split(mine), b = Split(theirs);
    if (a.key == b.key) {
      return Shown(a.key) + " is " + Shown(a.value) + " here and " + Shown(b.value) + " there";
    }
    return "the settings differ: '" + Shown(mine) + "' here, '" + Shown(theirs) +
           "' there (are both sides the same version of kumo?)";
  }
  return "";
}

std::string DefaultText(const Option& option, const Experiment& defaults) {
  if (!option.default_text.empty()) return option.default_text;
  return option.write(defaults);
}

std::string UnitAndAllowed(const Option& option) {
  std::string text = option.unit.empty() ? "" : "[" + option.unit + "]";
  const std::string allowed = option.allowed.Text();
  if (!allowed.empty()) text += (text.empty() ? "(" : " (") + allowed + ")";
  return text;
}

std::string OptionsMarkdown() {
  const OptionTable table;
  const Experiment defaults;
  std::string text(kMarkdownHead);
  std::string section;
  for (const Option& option : table.options()) {
    if (option.section() != section) {
      section = option.section();
      text +=
          "\n## [" + section + "]\n" + std::string(OptionTable::SectionHelp(section)) +
          "\n\n| key | default | unit | allowed | result | meaning |\n|---|---|---|---|---|---|\n";
    }
    text += "| `" + option.name() + "` | " + TableCell(DefaultText(option, defaults)) + " | " +
            option.unit + " | " + TableCell(option.allowed.Text()) + " | " +
            (option.result ? "yes" : "no") + " | " + TableCell(option.help) + " |\n";
  }
  return text;
}

std::string OptionsHelp() {
  const OptionTable table;
  const Experiment defaults;
  std::string text;
  std::string section;
  for (const Option& option : table.options()) {
    if (option.section() != section) {
      section = option.section();
      text += (text.empty() ? "[" : "\n[") + section + "]  " +
              std::string(OptionTable::SectionHelp(section)) + "\n";
    }
    text += "  " + option.key + " = " + DefaultText(option, defaults);
    const std::string unit_and_allowed = UnitAndAllowed(option);
    if (!unit_and_allowed.empty()) text += " " + unit_and_allowed;
    text += "\n      " + option.help + "\n";
  }
  return text;
}

std::string OptionsKeys() {
  const OptionTable table;
  std::string text;
  for (const Option& option : table.options()) {
    text += option.key;
    if (option.type == OptionType::kFlag) text += " true false";
    for (const std::string& value : option.allowed.values) text += " " + value;
    text += "\n";
  }
  return text;
}

}  // namespace kumo
