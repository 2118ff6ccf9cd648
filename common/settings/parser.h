// Experiment files: sections in brackets, `key = value` lines, comments after '#' (config_file.h),
// and `include = FILE` lines before the first section. The command line (`--set
// section.key=value`) goes over the file, the file over what it includes, that over the defaults.
//
// Functions without state; thread-safe. They read the file that they are given and those that it
// includes; the environment is handed in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "common/settings/option_table.h"
#include "common/settings/variables.h"

namespace kumo {

// Where a setting's value comes from: "experiments/x.conf:12", "--set sync.block".
using Origins = std::map<std::string, std::string, std::less<>>;

struct LoadedExperiment {
  Experiment experiment;
  Origins origins;  // by key; defaults are not listed
  // Everything that is wrong, one line each, in the order of the file, then of the command line,
  // then what settings say about each other. When there is any, `experiment` is not to be used.
  std::vector<std::string> problems;
  // What is allowed but most likely not meant, one line each: settings without effect.
  std::vector<std::string> notes;
};

// Reads `path` and then `sets` ("section.key=value" each). Replaces `variables` in paths
// (variables.h); $KUMO_DATA is the default of data.directory. Fills in what the defaults leave
// open: job.name, data.directory, output.directory; makes network.file and network.initial_weights
// of a file relative to the working directory.
LoadedExperiment LoadExperiment(const std::string& path, const std::vector<std::string>& sets,
                                const Variables& variables);

// The same for who only wants the experiment. InvalidArgument with the first problem, NotFound when
// the file cannot be read.
Result<Experiment> ParseExperiment(const std::string& path, const std::vector<std::string>& sets,
                                   const Variables& variables);

// What settings say about each other (a warm-up without block mode, milestones that do not ascend,
// addresses that are none, ...). Appends one line per problem or note. A problem names the origin
// of the key that it is about.
void CrossCheck(const Experiment& experiment, const Origins& origins,
                std::vector<std::string>* problems, std::vector<std::string>* notes);

}  // namespace kumo
