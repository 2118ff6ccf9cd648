// The option table: one row for each setting of an experiment. The parser, `--help`, `kumo check`,
// the experiment hash and docs/experiments.md all come from it.
//
// Adding a setting = a field in experiment.h and a row in option_table.cc.
// A table is a value without state of its own; immutable and thread-safe once made.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "common/settings/option_value.h"

namespace kumo {

// How a path stands in the text that processes compare (hosts keep files in different places).
enum class PathKind { kNone, kBaseName, kBaseNameIfAbsolute };

// Whether a setting is a path, in which `~` and ${VARIABLES} are replaced, and what a relative one
// is relative to where it stands in an experiment file.
enum class PathBase { kNone, kWorkingDirectory, kDataDirectory, kExperimentFile };

// What a setting's value is.
enum class OptionType { kFlag, kInteger, kNumber, kText, kNumbers, kTexts };

struct Option {
  std::string key;   // "sync.minibatch"
  std::string unit;  // "samples"; "" for none
  std::string help;  // one sentence without a full stop
  std::string also;  // other words for it, separated by blanks, for advice (option_words.h)
  OptionType type = OptionType::kText;
  Allowed allowed;
  bool result = false;  // part of the experiment hash
  PathKind path = PathKind::kNone;
  PathBase base = PathBase::kNone;
  std::string default_text;  // said instead of the default value where that is worked out

  // Reads a value; the error does not name the key.
  std::function<Status(std::string_view text, Experiment* experiment)> read;
  std::function<std::string(const Experiment& experiment)> write;

  std::string section() const { return key.substr(0, key.find('.')); }
  std::string name() const { return key.substr(key.find('.') + 1); }
};

class OptionTable {
 public:
  // Every setting, by sections, in the order of experiment.h: the canonical order.
  OptionTable();

  const std::vector<Option>& options() const { return options_; }
  // Borrowed for as long as the table lives; null for an unknown key.
  const Option* Find(std::string_view key) const;
  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<std::string>& sections() const { return sections_; }
  // What a section is about, in words.
  static std::string_view SectionHelp(std::string_view section);

 private:
  std::vector<Option> options_;
  std::vector<std::string> keys_;
  std::vector<std::string> sections_;
};

}  // namespace kumo
