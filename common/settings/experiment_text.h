// Experiment text: the settings that a job's result depends on, one `key = value` a line. Processes
// compare it (and its hash) at hello, checkpoints store it, and a job that continues from a
// checkpoint finds there which settings have changed.
//
// A renamed setting keeps its first name in the text, so that hashes and checkpoints of older
// releases stay valid; everything that people see has the new name.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// In the option table's order. Equal exactly if two processes compute the same job; of paths it has
// the part on which hosts agree.
std::string ExperimentText(const Experiment& experiment);

// The experiment of a text, as far as settings are compared; its paths are those of the text.
// DataLoss for a value that a setting does not take. Unknown keys are ignored.
Result<Experiment> ExperimentOfText(std::string_view text);

// The settings of the text as values: bool, a number, or text.
struct ResultSetting {
  std::string key;
  std::variant<bool, double, std::string> value;
};
std::vector<ResultSetting> ResultSettings(const Experiment& experiment);

// FNV-1a (64 bits, Fowler, Noll, Vo) of ExperimentText.
uint64_t ExperimentHash(const Experiment& experiment);
// The hash as people see it: 16 hexadecimal digits.
std::string HashText(const Experiment& experiment);

// The first difference of two texts in words, "sync.minibatch is 64 here and 32 there", or "" if
// there is none. `there` may come from a peer: whatever it holds, the answer is one short printable
// line.
std::string FirstDifference(std::string_view here, std::string_view there);

struct SettingChange {
  std::string key;
  std::string then;
  std::string now;
};

// Changes from the settings of a checkpoint's text to those of now, in the option table's order. A
// setting that the text lacks, since an older release wrote it, had its default; a setting that no
// longer exists is a change to "(no such setting)". Settings of Effect::kStart are not compared.
// `then` may be damaged: whatever it holds, this returns.
std::vector<SettingChange> SettingChanges(std::string_view then, const Experiment& now);

// "job.epochs 2 -> 4, schedule.learning_rate 0.1 -> 0.01"; "empty" stands for no value.
std::string DescribeChange(const SettingChange& change);
std::string DescribeChanges(const std::vector<SettingChange>& changes);

}  // namespace kumo
