// kumo new: creates an experiment and a network from an installed experiment.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/new_experiment.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/settings/installed_experiments.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestNetwork = 16 << 20;
constexpr char kNameText[] = "letters, digits, '-' and '_'";

struct NewArguments {
  std::string name;
  std::string from = "mnist_lenet";
  bool list = false;
};

CommandLine MakeCommandLine(NewArguments* args) {
  CommandLine line(
      "kumo new",
      "Creates NAME.conf, an experiment with a comment for every setting, and "
      "NAME.pbtxt, its network,\nin the working directory, for you to edit. Unedited it "
      "trains the same as its model.");
  line.AddPositional("NAME", std::string("Name of the experiment: ") + kNameText,
                     /*required=*/false, &args->name);
  line.AddOption("from", "FILE", Allowed(),
                 "Experiment to start from: a file, or the name of an installed experiment",
                 &args->from);
  line.AddFlag("list", "List the installed experiments", &args->list);
  line.AddNote(
      "Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 a file of that name "
      "exists\n(none is overwritten), or the experiment to start from is invalid.");
  return line;
}

Status CheckArguments(const NewArguments& args) {
  if (args.list) return OkStatus();
  if (args.name.empty()) {
    return InvalidArgument("NAME is missing: kumo new NAME --from EXPERIMENT (kumo new --list)");
  }
  std::string ignored;
  const Status status = ReadValue(args.name, {.characters = "-_", .text = kNameText}, &ignored);
  return status.WithContext("the name " + args.name);
}

Status List(const CliEnvironment& environment) {
  const std::vector<std::string> names = InstalledExperiments(environment.share);
  if (names.empty()) {
    return FailedPrecondition("no experiments in " + environment.share +
                              "/experiments; install Kumo completely");
  }
  for (const std::string& name : names) {
    KUMO_ASSIGN_OR_RETURN(const std::string text,
                          ReadExperimentFile(FindExperiment(name + ".conf", environment.share)));
    std::printf("%-20s %s\n", name.c_str(), TitleOf(LeadingComment(text)).c_str());
  }
  return OkStatus();
}

Status Write(const CliEnvironment& environment, const NewArguments& args) {
  const std::string path = FindExperiment(args.from, environment.share);
  KUMO_ASSIGN_OR_RETURN(const std::string original, ReadExperimentFile(path));
  const LoadedExperiment from = LoadExperiment(path, {}, environment.variables);
  if (!from.problems.empty()) return FailedPrecondition(from.problems.front());
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string network,
                        ReadWholeFile(files, from.experiment.network.file, kLongestNetwork));
  const std::string experiment_file = args.name + ".conf", network_file = args.name + ".pbtxt";
  for (const std::string& file : {experiment_file, network_file}) {
    if (files.Exists(file)) {
      return FailedPrecondition(file +
                                " exists; nothing is overwritten: choose another name, or move the "
                                "file away");
    }
  }
  const std::string text = NewExperimentText(args.name, from, args.from, LeadingComment(original));
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, network_file, network));
  if (const Status written = WriteFileAtomically(files, experiment_file, text); !written.ok()) {
    (void)files.RemoveFile(network_file);
    return written;
  }
  std::printf("%s  the experiment, with a comment for every setting\n%s  its network\n\n",
              experiment_file.c_str(), network_file.c_str());
  std::printf("kumo check %s\nkumo launch %s\n", experiment_file.c_str(), experiment_file.c_str());
  return OkStatus();
}

}  // namespace

int RunNew(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo new");
  NewArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return CheckArguments(arguments); }))
    return *end;
  const Status status = arguments.list ? List(environment) : Write(environment, arguments);
  return status.ok() ? 0 : exit_reporter.Report(status);
}

}  // namespace kumo
