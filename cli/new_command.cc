// kumo new: creates an experiment and a network, for a data set or from an installed experiment.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/new/described_data.h"
#include "cli/new/new_from_data.h"
#include "cli/new_experiment.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/text_table.h"
#include "common/settings/installed_experiments.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestNetwork = 16 << 20;
constexpr char kNameText[] = "letters, digits, '-' and '_'";

constexpr char kDefaultModel[] = "mnist_lenet";

struct NewArguments {
  std::string name;
  std::string from;  // "": kDefaultModel
  std::string data;  // "": none
  bool list = false;
};

CommandLine MakeCommandLine(NewArguments* args) {
  CommandLine line(
      "kumo new",
      "Creates NAME.conf, an experiment, and NAME.pbtxt, its network, in the working directory, "
      "for you to\nedit: for your data with --data, else a copy of an installed experiment with a "
      "comment for every\nsetting, which unedited trains the same as its model.");
  line.AddPositional("NAME", std::string("Name of the experiment: ") + kNameText,
                     /*required=*/false, &args->name);
  line.AddOption(
      "data", "PATH", Allowed(),
      "Look at a data set and write a short experiment and a network for it: a folder or "
      "an archive with images in one folder per class, with masks in a folder beside the images, "
      "or with objects in Pascal VOC's layout, a CSV file, an image map, IDX files, CIFAR's files, "
      "CNTK's text format, or a text",
      &args->data, "none");
  line.AddOption("from", "FILE", Allowed(),
                 "Experiment to copy: a file, or the name of an installed experiment", &args->from,
                 kDefaultModel);
  line.AddFlag("list", "List the installed experiments", &args->list);
  line.AddNote(
      "Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 a file of that name "
      "exists\n(none is overwritten), the experiment to copy is invalid, or no data set is "
      "recognised.");
  return line;
}

Status ValidateArguments(const NewArguments& args) {
  if (args.list) return OkStatus();
  if (args.name.empty()) {
    return InvalidArgument(
        "NAME is missing: kumo new NAME --data FOLDER for your data, or kumo new NAME --from "
        "EXPERIMENT (kumo new --list)");
  }
  if (!args.data.empty() && !args.from.empty()) {
    return InvalidArgument("--data and --from exclude each other: use one of them");
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

std::string ExperimentFile(const std::string& name) { return name + ".conf"; }
std::string NetworkFile(const std::string& name) { return name + ".pbtxt"; }

Status CheckNothingIsThere(const std::string& name) {
  PosixFileSystem files;
  for (const std::string& file : {ExperimentFile(name), NetworkFile(name)}) {
    if (files.Exists(file)) {
      return FailedPrecondition(file +
                                " exists; nothing is overwritten: choose another name, or move the "
                                "file away");
    }
  }
  return OkStatus();
}

Status WriteBoth(const std::string& name, const std::string& experiment,
                 const std::string& network) {
  PosixFileSystem files;
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, NetworkFile(name), network));
  const Status written = WriteFileAtomically(files, ExperimentFile(name), experiment);
  if (!written.ok()) (void)files.RemoveFile(NetworkFile(name));
  return written;
}

// about: of the experiment file.
void PrintFiles(const std::string& name, const std::string& about,
                const std::string& check = "kumo check ") {
  const std::string experiment = ExperimentFile(name);
  std::printf("%s   %s\n%s  its network\n\n%s%s\nkumo launch %s\n", experiment.c_str(),
              about.c_str(), NetworkFile(name).c_str(), check.c_str(), experiment.c_str(),
              experiment.c_str());
}

Result<std::string> NetworkOf(const LoadedExperiment& experiment) {
  PosixFileSystem files;
  return ReadWholeFile(files, experiment.experiment.network.file, kLongestNetwork);
}

Status Copy(const CliEnvironment& environment, const NewArguments& args) {
  const std::string model = args.from.empty() ? kDefaultModel : args.from;
  const std::string path = FindExperiment(model, environment.share);
  KUMO_ASSIGN_OR_RETURN(const std::string original, ReadExperimentFile(path));
  const LoadedExperiment from = LoadExperiment(path, {}, environment.variables);
  if (!from.problems.empty()) return FailedPrecondition(from.problems.front());
  KUMO_ASSIGN_OR_RETURN(const std::string network, NetworkOf(from));
  KUMO_RETURN_IF_ERROR(CheckNothingIsThere(args.name));
  const std::string about = LeadingComment(original);
  KUMO_RETURN_IF_ERROR(
      WriteBoth(args.name, NewExperimentText(args.name, from, model, about), network));
  const std::string title = TitleOf(about);
  std::printf("copied from %s%s%s\n", model.c_str(), title.empty() ? "" : ": ", title.c_str());
  if (args.from.empty()) {
    std::printf("(--data FOLDER writes an experiment for your data; --list shows other models)\n");
  }
  std::printf("\n");
  PrintFiles(args.name, "the experiment, with a comment for every setting");
  return OkStatus();
}

// The use of each column of a table.
void PrintColumns(const CliEnvironment& environment, const std::string& name,
                  const DescribedData& data) {
  if (data.columns.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [column, use] : data.columns) rows.push_back({column, use});
  const TextColumn header[] = {{"column", false}, {"use", false}};
  std::printf("\n%sto change a use: columns in %s, see \"Tables and masks\" in docs/formats.md\n",
              FormatTextTable(header, rows, environment.columns).c_str(),
              ExperimentFile(name).c_str());
}

Status WriteForData(const CliEnvironment& environment, const NewArguments& args) {
  KUMO_RETURN_IF_ERROR(CheckNothingIsThere(args.name));
  KUMO_ASSIGN_OR_RETURN(const DescribedData data, DescribeData(environment, args.data));
  std::string network;
  if (const std::string name = ModelFor(data); !name.empty()) {
    const LoadedExperiment model =
        LoadExperiment(FindExperiment(name, environment.share), {}, environment.variables);
    if (!model.problems.empty()) return FailedPrecondition(model.problems.front());
    KUMO_ASSIGN_OR_RETURN(network, NetworkOf(model));
  }
  KUMO_RETURN_IF_ERROR(
      WriteBoth(args.name, ExperimentFor(args.name, data), NetworkFor(args.name, data, network)));
  std::printf("%s: %s\n%s\n", args.data.c_str(), data.form.c_str(), SizesText(data).c_str());
  if (data.damaged > 0) {
    std::printf("note: %lld images are damaged; kumo check %s --data lists all of them\n",
                static_cast<long long>(data.damaged), ExperimentFile(args.name).c_str());
  }
  for (const std::string& note : data.notes) std::printf("note: %s\n", note.c_str());
  PrintColumns(environment, args.name, data);
  std::printf("\n");
  PrintFiles(args.name, "the experiment", data.damaged > 0 ? "kumo check --data " : "kumo check ");
  return OkStatus();
}

}  // namespace

int RunNew(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo new");
  NewArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return ValidateArguments(arguments); }))
    return *end;
  const Status status = arguments.list           ? List(environment)
                        : arguments.data.empty() ? Copy(environment, arguments)
                                                 : WriteForData(environment, arguments);
  return status.ok() ? 0 : exit_reporter.Report(status);
}

}  // namespace kumo
