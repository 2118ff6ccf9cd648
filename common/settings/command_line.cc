#include "common/settings/command_line.h"

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <optional>
#include <utility>

#include "common/base/did_you_mean.h"
#include "common/base/printable.h"
#include "common/base/shell_word.h"
#include "common/settings/command_line_pages.h"
#include "common/settings/key_advice.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

namespace po = boost::program_options;

// No abbreviations: an option that is added must not change what a script means.
constexpr int kStyle =
    po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
    po::command_line_style::long_allow_next | po::command_line_style::allow_short |
    po::command_line_style::allow_dash_for_short | po::command_line_style::short_allow_next;

// Bytes of an argument that a message repeats.
constexpr size_t kLongestNamed = 200;

// The value that follows an option of a person who knows another program: "--epochs 5" or
// "--epochs=5". Nothing if there is none.
std::optional<std::string> GivenValue(const std::string& option,
                                      std::span<const std::string> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].starts_with(option + "=")) return args[i].substr(option.size() + 1);
    if (args[i] == option && i + 1 < args.size() && !args[i + 1].starts_with("-")) {
      return args[i + 1];
    }
  }
  return std::nullopt;
}

// "--set job.epochs=5 or --set ...", of settings that an unknown option names. Settings that refuse
// the value come only if all do, then without the value and with those that are allowed.
std::string WaysToSet(std::span<const std::string> keys, const std::optional<std::string>& value) {
  std::string taken, refused;
  const auto add = [](std::string* ways, const std::string& way) {
    *ways += (ways->empty() ? "" : " or ") + way;
  };
  for (const std::string& key : keys) {
    const Option& setting = *OptionTable::Shared().Find(key);
    Experiment unused;
    if (value && setting.read(*value, &unused).ok()) {
      add(&taken, "--set " + ShellWord(key + "=" + CutInTheMiddle(*value, kLongestNamed)));
    } else {
      const std::string allowed = setting.allowed.Text();
      add(&refused, "--set " + key + "=VALUE" + (allowed.empty() ? "" : " (" + allowed + ")"));
    }
  }
  return taken.empty() ? refused : taken;
}

}  // namespace

CommandLine::CommandLine(std::string program, std::string about)
    : program_(std::move(program)), about_(std::move(about)) {
  // Taken before the others are (ReadQuestion).
  AddRow({"help", "", "Print this text and end; --help=man: as a man page", "", "", {}, nullptr});
}

void CommandLine::AddPositional(std::string placeholder, std::string help, bool required,
                                std::string* value) {
  AddPositional(std::move(placeholder), std::move(help), required,
                [value](const std::string& text) { *value = text; });
}

void CommandLine::AddPositional(std::string placeholder, std::string help, bool required,
                                std::function<void(const std::string& text)> read) {
  positionals_.push_back({std::move(placeholder), std::move(help), required, std::move(read)});
}

void CommandLine::AddVersion() {
  has_version_ = true;
  AddFlag("version", "Print version, commit, backends and instruction set, and end",
          &version_asked_);
}

void CommandLine::AddFlag(std::string name, std::string help, bool* value) {
  AddRow({std::move(name), "", std::move(help), "", "", {}, [value](std::string_view) {
            *value = true;
            return OkStatus();
          }});
}

void CommandLine::AddRepeated(std::string name, std::string placeholder, std::string help,
                              std::vector<std::string>* values) {
  AddRow({std::move(name),
          std::move(placeholder),
          std::move(help),
          "",
          "",
          {},
          [values](std::string_view text) {
            values->emplace_back(text);
            return OkStatus();
          }});
}

void CommandLine::AddSeveral(std::string name, std::string placeholder, std::string help,
                             std::vector<std::string>* values) {
  AddRepeated(std::move(name), placeholder + "...", std::move(help), values);
  rows_.back().takes_several = true;
}

void CommandLine::AddPositionals(std::string placeholder, std::string help,
                                 std::vector<std::string>* values) {
  AddPositional(std::move(placeholder), std::move(help), /*required=*/false,
                [values](const std::string& text) { values->push_back(text); });
  positionals_.back().repeats = true;
}

void CommandLine::AddSettings(std::vector<std::string>* sets) {
  AddRepeated("set", "SECTION.KEY=VALUE",
              "Override a setting of the file; repeatable (kumo options lists them)", sets);
  takes_settings_ = true;
}

void CommandLine::AddNote(std::string note) { notes_.push_back(std::move(note)); }

void CommandLine::AddRow(Row row) { rows_.push_back(std::move(row)); }

const CommandLine::Row* CommandLine::Find(std::string_view name) const {
  const auto row =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.name == name; });
  return row == rows_.end() ? nullptr : &*row;
}

const CommandLine::Row* CommandLine::FindByOtherWord(std::string_view word) const {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::vector<KnownName> known;
  for (const Row& row : rows_) known.push_back({row.name, row.also});
  const std::vector<size_t> meant = Meant(word, known, /*most_edits=*/0);
  return meant.empty() ? nullptr : &rows_[meant.front()];
}

Status CommandLine::UnknownOption(const std::string& given,
                                  std::span<const std::string> args) const {
  const std::string name = given.substr(0, given.find('='));
  const std::string unknown = "unknown option " + CutInTheMiddle(name, kLongestNamed);
  const std::optional<std::string> value = GivenValue(name, args);
  if (const Row* const row = FindByOtherWord(name)) {
    // The command ends here, so that what the value is read into is not used.
    const bool takes = value && !row->placeholder.empty() && row->read(*value).ok();
    return InvalidArgument(unknown + "; write --" + row->name +
                           (takes ? " " + ShellWord(CutInTheMiddle(*value, kLongestNamed))
                                  : " " + row->placeholder + ": " + row->Explanation()));
  }
  const std::vector<std::string> keys =
      takes_settings_ ? SettingsNamed(name) : std::vector<std::string>();
  if (!keys.empty()) {
    return InvalidArgument(unknown + "; it is a setting of the experiment: write " +
                           WaysToSet(keys, value));
  }
  std::vector<std::string> known;
  for (const Row& row : rows_) known.push_back("--" + row.name);
  return InvalidArgument("unknown option " + CutInTheMiddle(given, kLongestNamed) +
                         DidYouMean(given, known) + " (" + program_ + " --help lists them)");
}

Status CommandLine::NeedsValue(const std::string& given) const {
  const Row* row = Find(given.substr(std::min(given.find_first_not_of('-'), given.size())));
  return InvalidArgument(given + " needs a value" +
                         (row == nullptr ? "" : ": " + given + " " + row->placeholder));
}

Status CommandLine::TakePositional(const std::string& value) {
  if (taken_ == positionals_.size()) {
    return InvalidArgument("'" + CutInTheMiddle(value, kLongestNamed) +
                           "' is one argument too many (" + program_ +
                           " --help lists its arguments)");
  }
  positionals_[taken_].read(value);
  if (!positionals_[taken_].repeats) ++taken_;
  return OkStatus();
}

Status CommandLine::TakeOption(const std::string& name, const std::string& value) const {
  const Status status = Find(name)->read(value);
  if (status.ok()) return status;
  return InvalidArgument("--" + name + " " + CutInTheMiddle(value, kLongestNamed) + ": " +
                         status.message());
}

Result<bool> CommandLine::ReadQuestion(const std::string& arg) {
  static constexpr std::pair<std::string_view, Format> kFormats[] = {
      {"--help", HelpOf},
      {"-h", HelpOf},
      {"--help=man", ManPageOf},
      {"--help=words", CompletionWordsOf},
  };
  for (const auto& [name, format] : kFormats) {
    if (arg == name) help_format_ = format;
  }
  version_asked_ = has_version_ && arg == "--version";
  if (arg.starts_with("--help=") && !help_asked()) {
    return InvalidArgument(CutInTheMiddle(arg, kLongestNamed) +
                           ": there are --help, --help=man and --help=words");
  }
  return help_asked() || version_asked_;
}

Status CommandLine::Parse(std::span<const std::string> args) {
  for (const std::string& arg : args) {
    KUMO_ASSIGN_OR_RETURN(const bool question, ReadQuestion(arg));
    if (question) return OkStatus();
  }
  po::options_description known;
  for (const Row& row : rows_) {
    if (row.placeholder.empty()) {
      known.add_options()(row.name.c_str(), "");
    } else {
      known.add_options()(row.name.c_str(), po::value<std::string>(), "");
    }
  }
  std::vector<po::option> given;
  using Syntax = po::invalid_command_line_syntax;
  try {
    po::command_line_parser parser(std::vector<std::string>(args.begin(), args.end()));
    given = parser.options(known).style(kStyle).run().options;
  } catch (const po::unknown_option& error) {
    return UnknownOption(error.get_option_name(), args);
  } catch (const Syntax& error) {
    const std::string name = error.get_option_name();
    if (error.kind() == Syntax::extra_parameter) return InvalidArgument(name + " takes no value");
    return NeedsValue(name);
  }
  const Row* before = nullptr;  // the option that was given last
  for (const po::option& option : given) {
    const std::string value = option.value.empty() ? "" : option.value.front();
    const bool named = option.position_key < 0;
    if (named) before = Find(option.string_key);
    if (named && before != nullptr) given_.insert(before->name);
    const bool one_more =
        taken_ == positionals_.size() && before != nullptr && before->takes_several;
    KUMO_RETURN_IF_ERROR(named || one_more ? TakeOption(before->name, value)
                                           : TakePositional(value));
  }
  if (taken_ < positionals_.size() && positionals_[taken_].required) {
    return InvalidArgument(positionals_[taken_].placeholder + " is missing (" + program_ +
                           " --help)");
  }
  return OkStatus();
}

Status CommandLine::RefuseGiven(std::initializer_list<std::string_view> names,
                                const std::string& why) const {
  for (const std::string_view name : names) {
    if (given_.contains(name)) return InvalidArgument("--" + std::string(name) + ": " + why);
  }
  return OkStatus();
}

std::string CommandLine::Row::Explanation() const {
  std::string text = help;
  if (!allowed.empty()) text += "; " + allowed;
  if (!default_text.empty()) text += " (default: " + default_text + ")";
  return text;
}

std::string CommandLine::Help() const { return help_asked() ? help_format_(*this) : HelpOf(*this); }

}  // namespace kumo
