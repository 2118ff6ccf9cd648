// What has changed between two experiments: the settings of a checkpoint, as its manifest keeps
// them (ExperimentText), and those of now.
//
// Not compared, since nothing that is computed from a checkpoint on depends on them: job.name, so
// that an experiment file may be renamed, and network.initial_weights and
// network.initial_names, which say where the first round began. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

struct SettingChange {
  std::string key;
  std::string then;
  std::string now;
};

// In the option table's order. A setting that the text does not have, since an older release wrote
// it, had its default; one that there is no more is a change to "(no such setting)". `then` may be
// damaged: whatever it holds, this returns.
std::vector<SettingChange> SettingChanges(std::string_view then, const Experiment& now);

// "job.epochs 2 -> 4, schedule.learning_rate 0.1 -> 0.01"; "empty" stands for no value.
std::string DescribeChange(const SettingChange& change);
std::string DescribeChanges(const std::vector<SettingChange>& changes);

// The experiment that a text is of, as far as settings are compared; of paths it has what the text
// has. DataLoss for a value that a setting does not take.
Result<Experiment> ExperimentOfText(std::string_view text);

}  // namespace kumo
