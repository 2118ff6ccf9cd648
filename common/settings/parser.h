// Parser of experiments: layers of settings, each over the earlier ones: the defaults, the files
// that an experiment file includes, the file itself, the command line (`--set section.key=value`).
// config_file.h has the syntax of the files.
//
// Functions without state; thread-safe. They read the file that they are given and those that it
// includes; the environment is handed in.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/base/printable.h"
#include "common/base/status.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment.h"
#include "common/settings/option_table.h"

namespace kumo {

// Origin of each setting's value, by key: "experiments/x.conf:12", "--set sync.block".
using Origins = std::map<std::string, std::string, std::less<>>;

struct LoadedExperiment {
  Experiment experiment;
  Origins origins;  // defaults are not listed
  // All errors, one line each, in the order of the file, then of the command line, then
  // contradictions between settings. `experiment` is unusable if there is any.
  std::vector<std::string> problems;
  // Settings that are allowed but most likely a mistake, one line each: settings without effect,
  // old names.
  std::vector<std::string> notes;
};

// Reads `path` and then `sets` ("section.key=value" each). Replaces `variables` in paths
// (config_file.h); $KUMO_DATA is the default of data.directory. Fills in the defaults that are
// worked out: job.name, data.directory, output.directory; makes network.file and
// network.initial_weights of a file relative to the working directory.
LoadedExperiment LoadExperiment(const std::string& path, const std::vector<std::string>& sets,
                                const Variables& variables);

// The experiment alone. InvalidArgument with the first problem, NotFound if the file cannot be
// read.
Result<Experiment> ParseExperiment(const std::string& path, const std::vector<std::string>& sets,
                                   const Variables& variables);

// Fills in the folders of [data] that the environment decides, if they are not set: data.directory
// ($KUMO_DATA) and data.cache.
void FillInDataFolders(const Variables& variables, Experiment::Data* data);

// The text of an experiment file. NotFound if it cannot be read, InvalidArgument if it is longer
// than any experiment.
Result<std::string> ReadExperimentFile(const std::string& path);

// Contradictions between settings (a warm-up without block mode, milestones that do not ascend,
// malformed addresses, ...). Appends one line per problem or note. A problem names the origin of
// the key that it is about.
void CrossCheck(const Experiment& experiment, const Origins& origins,
                std::vector<std::string>* problems, std::vector<std::string>* notes);

// The problem if cluster.replicas exceeds the job's number of servers, or "". CrossCheck reports it
// if cluster.servers is set.
std::string ProblemOfReplicas(const Experiment& experiment, const Origins& origins, int servers);

// The layers one by one. Used once, by one thread.
class ExperimentReader {
 public:
  // Problems that come with advice. Advice takes longer than the rest of a file to read, and a file
  // with more problems is most likely no experiment.
  static constexpr size_t kMostAdvice = 20;

  // Both are borrowed for life; settings and problems go to *loaded.
  ExperimentReader(const Variables* variables, LoadedExperiment* loaded)
      : variables_(*variables), loaded_(*loaded) {}

  // The file and, before it, the files that it includes.
  void ReadFile(const std::string& path);
  // `text` as the content of the file `path`.
  void ReadText(const std::string& text, const std::string& path);
  // "section.key=value" each; the last of several for one key counts.
  void ReadCommandLine(const std::vector<std::string>& sets);
  // The last step: replaces variables in paths, and makes paths relative to the working directory
  // that were relative to their file.
  void ResolvePaths();

 private:
  // Origin of a key's value.
  struct Source {
    int layer = 0;
    std::string folder;  // of the file; "" for the command line
  };
  // A file that is being read.
  struct OpenFile {
    std::string identity;  // the same for all names of one file
    std::string includes;  // "a.conf:3 includes b.conf"
  };

  void Include(const std::string& value, const std::string& path, const std::string& where);
  void Set(const std::string& name, const std::string& value, const std::string& where,
           const Source& source);
  void Section(const std::string& name, const std::string& where);
  bool Advises() const;  // whether an unknown name comes with a suggestion
  void Problem(const std::string& where, const std::string& what) {
    loaded_.problems.push_back(CutInTheMiddle(where + ": " + what));
  }

  const OptionTable& table_ = OptionTable::Shared();
  const Variables& variables_;
  LoadedExperiment& loaded_;
  std::map<std::string, Source> sources_;  // by key
  std::vector<OpenFile> open_;             // the first includes the second, and so on
  int layers_ = 0;                         // files read so far
};

}  // namespace kumo
