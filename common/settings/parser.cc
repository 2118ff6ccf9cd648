#include "common/settings/parser.h"

#include <cctype>
#include <filesystem>
#include <utility>

#include "common/settings/experiment_reader.h"

namespace kumo {
namespace {

// Letters, digits, '-' and '_' of the file's stem.
std::string NameOf(const std::string& experiment_path) {
  std::string name = std::filesystem::path(experiment_path).stem().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  }
  return name.empty() ? "job" : name;
}

// The XDG Base Directory Specification's: of no use where it is relative. "" where no user has one.
std::string UsersCache(const Variables& variables) {
  const std::string caches = ValueOf(variables, "XDG_CACHE_HOME");
  if (caches.starts_with('/')) return caches + "/kumo";
  const std::string home = ValueOf(variables, "HOME");
  return home.starts_with('/') ? home + "/.cache/kumo" : "";
}

void FillInDefaults(const std::string& path, const Variables& variables, Experiment* experiment) {
  if (experiment->job.name.empty()) experiment->job.name = NameOf(path);
  if (experiment->data.directory.empty()) {
    experiment->data.directory = ValueOf(variables, "KUMO_DATA");
  }
  if (experiment->data.cache.empty()) experiment->data.cache = UsersCache(variables);
  if (experiment->output.directory.empty()) {
    experiment->output.directory = "out/" + experiment->job.name;
  }
}

}  // namespace

LoadedExperiment LoadExperiment(const std::string& path, const std::vector<std::string>& sets,
                                const Variables& variables) {
  const OptionTable table;
  LoadedExperiment loaded;
  ExperimentReader reader(&table, &variables, &loaded);
  reader.ReadFile(path);
  reader.ReadCommandLine(sets);
  reader.ResolvePaths();
  FillInDefaults(path, variables, &loaded.experiment);
  if (loaded.problems.empty()) {
    CrossCheck(loaded.experiment, loaded.origins, &loaded.problems, &loaded.notes);
  }
  return loaded;
}

Result<Experiment> ParseExperiment(const std::string& path, const std::vector<std::string>& sets,
                                   const Variables& variables) {
  const Result<std::string> readable = ReadExperimentFile(path);
  if (!readable.ok()) return readable.status();
  LoadedExperiment loaded = LoadExperiment(path, sets, variables);
  if (!loaded.problems.empty()) return InvalidArgument(loaded.problems.front());
  return std::move(loaded.experiment);
}

}  // namespace kumo
