// Option table: one row for each setting of an experiment. The parser, `--help`, `kumo check`, the
// experiment hash, what a job may change when it continues from a checkpoint, the notes about
// settings without effect, the advice for unknown keys (key_advice.h) and docs/experiments.md all
// come from it.
//
// Adding a setting = a field in experiment.h, a row in option_table.cc, and the code that uses it.
// Immutable; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "common/settings/no_effect.h"
#include "common/settings/option_value.h"

namespace kumo {

// Form of a path in the text that processes compare (hosts keep files in different places).
enum class PathKind { kNone, kBaseName, kBaseNameIfAbsolute };

// Whether a setting is a path, in which `~` and ${VARIABLES} are replaced, and the folder that a
// relative one in an experiment file is relative to.
enum class PathBase { kNone, kWorkingDirectory, kDataDirectory, kExperimentFile };

// Owner of a value. A copy of the experiment takes over the values of the experiment.
enum class Scope {
  kExperiment,  // the experiment: copies have the same
  kJob,         // one job: another job has its own
  kMachine,     // the machine of a process, as a port or a folder outside the data and the output
};

enum class OptionType { kFlag, kInteger, kNumber, kText, kNumbers, kTexts };

// Effect of another value of a setting; several may hold. Every effect but kLayout makes a setting
// part of the experiment hash. The comments say what a job that continues from a checkpoint with
// another value may do (common/checkpoint/continuation.h).
enum class Effect : uint32_t {
  kLayout = 0,                      // only on how a run is laid out; may change at any time
  kResult = 1 << 0,                 // on the weights; may change from any checkpoint on
  kStart = 1 << 1 | kResult,        // on the first round alone; is not compared at all
  kData = 1 << 2 | kResult,         // on the form of the samples; must stay
  kMode = 1 << 3 | kResult,         // on the kind of rounds; must stay
  kRounds = 1 << 4 | kResult,       // on the samples of a round; the rounds so far must stay
  kOrder = 1 << 5 | kResult,        // on the order of an epoch; may change between two epochs
  kMomentDecay = 1 << 6 | kResult,  // on Adam's moments; may not change while they are kept
  kStepCount = 1 << 7 | kResult,    // on the step count of partitions that keep Adam's moments
  // On whether Adam's moments begin at zero: anywhere, or in the partitions. They may not, since
  // the correction of their bias counts from the first round.
  kAnyMoments = 1 << 8 | kResult,
  kLocalMoments = 1 << 9 | kResult,
  // On which samples the data have, not on their form; may change if the rounds so far keep their
  // places in the epochs.
  kFiles = 1 << 10 | kResult,
  kInput = 1 << 11 | kData,    // on the numbers of a sample at the network's input; must stay
  kPixels = 1 << 14 | kInput,  // on the numbers that stand for an image's pixels; must stay
  // kMomentDecay and kAnyMoments of a block rule.
  kBlockMomentDecay = 1 << 12 | kResult,
  kBlockMoments = 1 << 13 | kResult,
};
constexpr Effect operator|(Effect a, Effect b) {
  return static_cast<Effect>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}

// Functions over values of one type, by which a row is independent of its setting's type.
struct ValueType {
  OptionType type;
  Status (*read)(std::string_view text, const Allowed& allowed, void* value);
  std::string (*write)(const void* value);
  // Words of a choice and their meanings; none for other types.
  std::vector<std::pair<std::string_view, std::string_view>> (*words)();
};

// The place of a setting's value in an Experiment.
struct OptionField {
  void* (*of)(Experiment& experiment);
  const ValueType* type;
};

struct Option {
  std::string key;  // "sync.minibatch"
  OptionField field;
  std::string_view unit = "";  // "samples"; "" for none; a key counts in the value of that setting
  Allowed allowed = {};
  Effect effect = Effect::kLayout;
  std::vector<NoEffect> no_effect = {};  // conditions under which it has none
  PathBase base = PathBase::kNone;
  PathKind path = PathKind::kNone;
  Scope scope = Scope::kExperiment;
  std::string_view default_text = "";  // shown instead of a default that is worked out
  // Name before a rename: still read, and still the name in experiment texts, so that hashes stay.
  std::string_view old_key = "";
  std::string_view also = "";  // other words for it, separated by blanks; only for advice
  std::string_view help = "";  // a noun phrase, then the effect and special values; no full stop

  // InvalidArgument as for ReadValue, without the key; the experiment is then unchanged.
  Status read(std::string_view text, Experiment* experiment) const {
    return field.type->read(text, allowed, field.of(*experiment));
  }
  std::string write(const Experiment& experiment) const {
    const std::string text = field.type->write(field.of(const_cast<Experiment&>(experiment)));
    return text.empty() ? std::string(allowed.word_for_empty) : text;
  }
  OptionType type() const { return field.type->type; }
  std::string section() const { return key.substr(0, key.find('.')); }
  std::string name() const { return key.substr(key.find('.') + 1); }
  // Whether it is part of the experiment hash.
  bool result() const { return effect != Effect::kLayout; }
  bool Has(Effect one) const { return (effect | one) == effect; }
  // Why it has no effect in this experiment: the first of its conditions that holds; "" if none.
  std::string WhyNoEffect(const Experiment& experiment) const;
  // Its name in experiment texts.
  std::string_view text_key() const { return old_key.empty() ? std::string_view(key) : old_key; }
  // `help`, and the meaning of each word of a choice.
  std::string Help() const;
};

class OptionTable {
 public:
  // The only table; lives for ever.
  static const OptionTable& Shared();
  OptionTable(const OptionTable&) = delete;

  // Every setting, by sections, in the order of experiment.h: the canonical order.
  const std::vector<Option>& options() const { return options_; }
  // By key or old key. Borrowed for as long as the table lives; null for an unknown key.
  const Option* Find(std::string_view key) const;
  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<std::string>& sections() const { return sections_; }
  // A section's subject, a sentence.
  static std::string_view SectionHelp(std::string_view section);
  // Other words for a section, separated by blanks; only for advice.
  static std::string_view SectionAlso(std::string_view section);

 private:
  OptionTable();

  std::vector<Option> options_;
  std::vector<std::string> keys_;
  std::vector<std::string> sections_;
};

}  // namespace kumo
