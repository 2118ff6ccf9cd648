// Command line of a program or of one of its commands: `--name value`, `--name=value`, flags,
// positional arguments. Every row has its unit and default, so `--help`, man pages and completion,
// which are made from the rows (command_line_pages.h), are complete. An unknown option is refused
// with the nearest known one.
//
// Made by main, used once. The pointers that rows are given are borrowed until Parse returns. Not
// thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/settings/option_value.h"

namespace kumo {

class CommandLine {
 public:
  struct Row {
    std::string name;         // without dashes
    std::string placeholder;  // "" for a flag
    std::string help;
    std::string default_text;
    std::string allowed;
    std::vector<std::string> values;  // not empty: only these
    std::function<Status(std::string_view)> read;
    bool takes_several = false;  // several values behind one name, as from a shell's pattern
    std::string also{};          // other words for it, separated by blanks; only for advice

    // Help, allowed values, and the default.
    std::string Explanation() const;
  };
  struct Positional {
    std::string placeholder;
    std::string help;
    bool required;
    std::function<void(const std::string& text)> read;
    bool repeats = false;  // takes all further arguments
  };

  // program: "kumo launch"; about: its purpose, one or more lines. --help (and -h) always exist.
  CommandLine(std::string program, std::string about);

  // An argument without a name, in the order of these calls.
  void AddPositional(std::string placeholder, std::string help, bool required, std::string* value);
  // Likewise, for a value that is parsed from its text.
  void AddPositional(std::string placeholder, std::string help, bool required,
                     std::function<void(const std::string& text)> read);
  // The last arguments without a name, as many as are given.
  void AddPositionals(std::string placeholder, std::string help, std::vector<std::string>* values);
  void AddFlag(std::string name, std::string help, bool* value);
  // T: int, double, std::string, or a choice, which may be std::optional. *value holds the default,
  // which --help prints, or default_text if that is not empty.
  template <typename T>
  void AddOption(std::string name, std::string placeholder, Allowed allowed, std::string help,
                 T* value, std::string default_text = "") {
    if (default_text.empty()) default_text = WriteValue(*value);
    AddRow({std::move(name), std::move(placeholder), std::move(help), std::move(default_text),
            allowed.Text(), allowed.values,
            [allowed, value](std::string_view text) { return ReadValue(text, allowed, value); }});
  }
  // An option that may be given many times; its values come in the order given.
  void AddRepeated(std::string name, std::string placeholder, std::string help,
                   std::vector<std::string>* values);
  // Likewise; the arguments without a name that follow it, beyond the command's own, are its values
  // too.
  void AddSeveral(std::string name, std::string placeholder, std::string help,
                  std::vector<std::string>* values);

  // Other words for the option that was added last, separated by blanks: an unknown option of such
  // a name is refused with this one.
  void AlsoCalled(std::string words) { rows_.back().also = std::move(words); }

  // --set SECTION.KEY=VALUE, repeatable. An unknown option with the name of a setting is then
  // refused with that setting.
  void AddSettings(std::vector<std::string>* sets);

  // --version, of programs; main answers it (common/base/version.h).
  void AddVersion();

  // Text printed at the end of the help.
  void AddNote(std::string note);

  // args without the program's name. InvalidArgument (exit code 64) names the error and the nearest
  // known option. With --help or --version among the args nothing else is checked or required.
  Status Parse(std::span<const std::string> args);

  // After Parse: InvalidArgument with the name and `why` if one of these options was given.
  Status RefuseGiven(std::initializer_list<std::string_view> names, const std::string& why) const;

  bool help_asked() const { return help_format_ != nullptr; }
  bool version_asked() const { return version_asked_; }
  // The help in the form that was asked for: `--help=man` is a man page, `--help=words` the words
  // that a shell completes.
  std::string Help() const;

  const std::string& program() const { return program_; }
  const std::string& about() const { return about_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Positional>& positionals() const { return positionals_; }

 private:
  using Format = std::string (*)(const CommandLine& line);
  // Takes --help, -h, --help=FORMAT and --version; whether `arg` was one of them.
  Result<bool> ReadQuestion(const std::string& arg);
  void AddRow(Row row);
  const Row* Find(std::string_view name) const;
  // The option that has this word, which may have dashes, as another one; null: none has.
  const Row* FindByOtherWord(std::string_view word) const;
  // given: with its dashes. args: all arguments.
  Status UnknownOption(const std::string& given, std::span<const std::string> args) const;
  Status NeedsValue(const std::string& given) const;
  Status TakePositional(const std::string& value);
  Status TakeOption(const std::string& name, const std::string& value) const;

  std::string program_;
  std::string about_;
  std::vector<std::string> notes_;
  std::vector<Row> rows_;
  std::vector<Positional> positionals_;
  std::set<std::string, std::less<>> given_;  // names of options
  size_t taken_ = 0;                          // of the positionals
  Format help_format_ = nullptr;              // null: it is not asked for
  bool has_version_ = false;
  bool takes_settings_ = false;
  bool version_asked_ = false;
};

}  // namespace kumo
