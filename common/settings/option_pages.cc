#include "common/settings/option_pages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/base/terminal.h"
#include "common/settings/experiment_text.h"

namespace kumo {
namespace {

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
    "An experiment file defines the network, the data and the training. The same file gives the "
    "same weights on\n"
    "any number of workers and servers (not with `sync.mode = async`). `kumo check FILE` tries "
    "everything that a start needs and "
    "shows the\n"
    "settings that differ from their defaults, with file and line (`--verbose`: all settings).\n"
    "\n"
    "- Sections in brackets, `key = value` lines, comments after `#`. Lists are separated by "
    "commas.\n"
    "  A value with a `#` in it, or with blanks at its ends, stands in double quotes: `key = "
    "\"a#b\"`.\n"
    "- `include = FILE` before the first section reads FILE first; a relative name is relative to "
    "the\n"
    "  including file. It may be repeated; settings that are read later replace earlier ones.\n"
    "- In paths `~` is the home directory, `${NAME}` an environment variable, which must be set, "
    "and `$$`\n"
    "  stands for `$`.\n"
    "- `--set section.key=value` on any command line replaces the file's value, the file replaces "
    "what it\n"
    "  includes, and that replaces the defaults.\n"
    "- An unknown key or a bad value is refused with file, line, the allowed values and the most "
    "likely\n"
    "  intention, also for the field's other names (`lr`, `batch_size`).\n"
    "- Settings marked **result** are part of the experiment hash: processes that differ in one of "
    "them\n"
    "  refuse each other. After a change of one of them (other than `job.name`, "
    "`network.initial_weights` and\n"
    "  `network.initial_names`) a job continues from its checkpoints only with `--continue`\n"
    "  ([operations.md](operations.md#stop-and-resume)). All other settings may differ from run to "
    "run.\n"
    "\n"
    "This page is the output of `kumo options --markdown`; a test compares the two.\n";

constexpr int kGap = 2;  // blanks between columns, and before the first
// Longer values and origins are shortened to these where the terminal is too narrow.
constexpr int kLeastValue = 12;
constexpr int kLeastOrigin = 12;

struct Row {
  std::string key;
  std::string value;  // with its unit
  std::string origin;
};

// "experiments/x.conf:12" -> "x.conf:12"; "--set sync.block" -> "--set": the key stands beside it.
std::string ShownOrigin(const std::string& origin) {
  if (origin.starts_with("-")) return origin.substr(0, origin.find(' '));
  return origin.substr(origin.rfind('/') + 1);
}

std::vector<Row> Rows(const Experiment& experiment, const Origins& origins, bool all) {
  const OptionTable& table = OptionTable::Shared();
  const Experiment defaults;
  std::vector<Row> rows;
  for (const Option& option : table.options()) {
    const auto origin = origins.find(option.key);
    const std::string value = option.write(experiment);
    const bool differs = origin != origins.end() && value != option.write(defaults);
    if (!all && !differs) continue;
    // Some count in what another setting says.
    const Option* counts_in = table.Find(option.unit);
    const std::string unit =
        counts_in == nullptr ? std::string(option.unit) : counts_in->write(experiment);
    const bool bare = unit.empty() || value.empty();
    rows.push_back({option.key, bare ? value : value + " " + unit,
                    origin == origins.end() ? "default" : ShownOrigin(origin->second)});
  }
  return rows;
}

int Widest(const std::vector<Row>& rows, std::string Row::*cell) {
  int widest = 0;
  for (const Row& row : rows) widest = std::max(widest, ColumnsOf(row.*cell));
  return widest;
}

std::string Padded(std::string text, int columns) {
  text.append(std::max(columns - ColumnsOf(text), 0) + kGap, ' ');
  return text;
}

}  // namespace

std::string DefaultText(const Option& option, const Experiment& defaults) {
  if (!option.default_text.empty()) return std::string(option.default_text);
  return option.write(defaults);
}

std::string UnitAndAllowed(const Option& option) {
  std::string text = option.unit.empty() ? "" : "[" + std::string(option.unit) + "]";
  const std::string allowed = option.allowed.Text();
  if (!allowed.empty()) text += (text.empty() ? "(" : " (") + allowed + ")";
  return text;
}

std::string OptionsMarkdown() {
  const OptionTable& table = OptionTable::Shared();
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
            std::string(option.unit) + " | " + TableCell(option.allowed.Text()) + " | " +
            (option.result() ? "yes" : "no") + " | " + TableCell(option.Help()) + " |\n";
  }
  return text;
}

std::string OptionsHelp() {
  const OptionTable& table = OptionTable::Shared();
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
    text += "\n      " + option.Help() + "\n";
  }
  return text;
}

std::string OptionsKeys() {
  const OptionTable& table = OptionTable::Shared();
  std::string text;
  for (const Option& option : table.options()) {
    text += option.key;
    if (option.type() == OptionType::kFlag) text += " true false";
    for (const std::string& value : option.allowed.values) text += " " + value;
    text += "\n";
  }
  return text;
}

std::string ResolvedTable(const Experiment& experiment, const Origins& origins, TableStyle style) {
  const std::vector<Row> rows = Rows(experiment, origins, style.all);
  const int key = Widest(rows, &Row::key);
  int value = std::min(Widest(rows, &Row::value), 44);
  int origin = Widest(rows, &Row::origin);
  if (style.columns > 0) {
    const int room = style.columns - 3 * kGap - key;
    value = std::clamp(room - origin, std::min(kLeastValue, value), value);
    origin = std::clamp(room - value, std::min(kLeastOrigin, origin), origin);
  }
  std::string text;
  if (!style.all) {
    text = "settings that differ from the defaults (--verbose shows all " +
           std::to_string(OptionTable::Shared().options().size()) + "):\n";
  }
  for (const Row& row : rows) {
    const std::string shown = style.columns > 0 ? Shortened(row.value, value) : row.value;
    const std::string from = style.columns > 0 ? Shortened(row.origin, origin) : row.origin;
    text += std::string(kGap, ' ') + Padded(row.key, key) + Padded(shown, value) + from + "\n";
  }
  text += "experiment hash " + HashText(experiment) + "\n";
  return Folded(text, style.columns, kGap);
}

}  // namespace kumo
