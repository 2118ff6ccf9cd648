// Round problems: contradictions between the settings of a round. One check for experiments that
// are read (cross_check.cc) and for plans (PlanFor), since the settings of a checkpoint are not
// compared with each other where they are read.
//
// Pure function; thread-safe.
#pragma once

#include <vector>

#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"

namespace kumo {

// Parts that do not make up a minibatch, fragments that do not make up a block, an overlap as long
// as a round, and a delay that is too long. Requires settings in the ranges of the option table.
std::vector<SettingProblem> ProblemsOfRounds(const Experiment::Sync& sync);

}  // namespace kumo
