#include "cli/sweep/sweep_manifests.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "cli/manifests/run_folder.h"
#include "common/base/file.h"
#include "common/base/shell_word.h"

namespace kumo {
namespace {

constexpr uint64_t kMostQueueBytes = 1 << 20;

class ManifestWriter {
 public:
  explicit ManifestWriter(const SweepManifests& sweep) : sweep_(sweep) {}

  // Write the folder of one run, and of all runs with the queue. Return the problems.
  std::vector<Status> WriteRun(const SweepPoint& point, ClusterRun run);
  std::vector<Status> WriteRuns(std::span<const SweepPoint> points,
                                std::vector<std::string>* names);

 private:
  const SweepManifests& sweep_;
  PosixFileSystem files_;
  std::set<std::string> notes_;  // told
};

std::vector<Status> ManifestWriter::WriteRun(const SweepPoint& point, ClusterRun run) {
  const Status named = CheckRunName(run.name);
  if (!named.ok()) return {named.WithContext(run.name + " (job.name and a number)")};
  const LoadedExperiment loaded = sweep_.load(point);
  TakeProcesses(loaded.experiment, &run);
  const std::string out = JoinPath(sweep_.folder, run.name);
  std::vector<Status> problems = ProblemsOfRunFolder(loaded, run, out);
  if (SharesFinalModel(loaded.experiment, run)) {
    problems.push_back(InvalidArgument(
        "output.final_model = " + loaded.experiment.output.final_model +
        " is one folder for all runs; give --set output.final_model=" +
        (run.Has("final-model") ? ", so that each run has a folder of its name in /models" : "")));
  }
  if (!problems.empty()) return problems;
  const Status written = WriteRunFolder(sweep_.k8s, loaded, sweep_.about, run, out);
  if (!written.ok()) return {written};
  for (const std::string& note : NotesOfRunFolder(loaded, run)) {
    if (notes_.insert(note).second) sweep_.on_note("run " + point.name + ": " + note);
  }
  return {};
}

std::vector<Status> ManifestWriter::WriteRuns(std::span<const SweepPoint> points_of_runs,
                                              std::vector<std::string>* names) {
  const Result<std::string> queue =
      ReadWholeFile(files_, JoinPath(sweep_.k8s, "queue.sh"), kMostQueueBytes);
  if (!queue.ok()) return {queue.status()};
  Status status = files_.CreateDirectories(sweep_.folder);
  const std::string base = RunNameOf(sweep_.load(SweepPoint()).experiment.job.name);
  const size_t digits = std::to_string(points_of_runs.size()).size();
  std::string points;  // a line for each run: its name and its settings
  for (size_t i = 0; i < points_of_runs.size() && status.ok(); ++i) {
    const SweepPoint& point = points_of_runs[i];
    std::string number = std::to_string(i + 1);
    number.insert(0, digits - number.size(), '0');
    ClusterRun run = sweep_.like;
    run.name = names->emplace_back(base + "-" + number);
    std::vector<Status> problems = WriteRun(point, run);
    for (Status& problem : problems) problem = problem.WithContext("run " + point.name);
    if (!problems.empty()) return problems;
    points += names->back();
    for (const std::string& set : point.Sets()) points += " " + ShellWord(set);
    points += "\n";
  }
  const std::pair<const char*, std::string> files[] = {{"queue.sh", *queue}, {"points", points}};
  for (const auto& [name, text] : files) {
    if (status.ok()) status = WriteFileAtomically(files_, JoinPath(sweep_.folder, name), text);
  }
  if (!status.ok()) return {status};
  return {};
}

}  // namespace

WrittenSweep WriteSweepManifests(const SweepManifests& sweep, std::span<const SweepPoint> points) {
  const std::string& folder = sweep.folder;
  if (PosixFileSystem().Exists(folder)) {
    return {
        {},
        {FailedPrecondition(folder + " exists; nothing is overwritten: choose another folder")}};
  }
  WrittenSweep written;
  written.problems = ManifestWriter(sweep).WriteRuns(points, &written.names);
  if (!written.problems.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);  // so that the same command can be repeated
  }
  return written;
}

}  // namespace kumo
