#include "cli/command.h"

#include <cstdio>
#include <vector>

#include "common/settings/command_line_pages.h"

namespace kumo {

std::span<const Command> Commands() {
  static constexpr Command kCommands[] = {
      {"new", "create an experiment: for your data, or a copy of an installed one", RunNew,
       "init create"},
      {"launch", "train: start and supervise the processes of a job", RunLaunch,
       "train fit run start resume"},
      {"sweep", "train with several values of some settings, and compare", RunSweep,
       "search grid hyperopt optuna"},
      {"tune", "predict the speed of blocks, codecs and overlaps on a network", RunTune,
       "network bandwidth"},
      {"runs", "list the runs in a folder, and how their settings differ", RunRuns,
       "list ls experiments"},
      {"check", "validate an experiment, its data and this machine before a start", RunCheck,
       "verify lint dryrun doctor"},
      {"data", "show an experiment's data: classes, pixel statistics, sample images", RunData},
      {"evaluate", "compute a checkpoint's validation loss and accuracy", RunEvaluate,
       "test val valid eval score"},
      {"export", "export a checkpoint as ONNX, safetensors or npz", RunExport, "convert save"},
      {"import", "convert an ONNX model to a network file and its weights", RunImport, "load onnx"},
      {"predict", "classify images, or continue a text, with a checkpoint", RunPredict,
       "infer inference classify generate sample"},
      {"detect", "find objects in images with a checkpoint's detector", RunDetect,
       "find objects boxes locate"},
      {"status", "show the progress of a running job", RunStatus, "monitor top ps progress"},
      {"remote", "run a program on another host, as launch --hosts does", RunRemote},
      {"manifests", "write Kubernetes manifests of a run, for kubectl apply -k", RunManifests},
      {"stage", "copy a data set to a disk of this machine, with checksums", RunStage},
      {"trace", "record a timeline of a running job (Chrome trace)", RunTrace, "profile"},
      {"keys", "make the encryption keys of a job", RunKeys},
      {"options", "list all settings of an experiment file", RunOptions, "settings config"},
  };
  return kCommands;
}

namespace {

constexpr char kAbout[] =
    "Trains neural networks on several processes or machines: servers hold the weights, workers\n"
    "train on shares of the data and send their updates. An experiment file defines the network,\n"
    "the data and the training.";
constexpr char kExitCodes[] =
    "0 done, 1 crashed, 64 wrong command line, 75 temporary failure: unavailable or preempted\n"
    "(start it again), 78 bad configuration (do not restart).";

void PrintHelp() {
  std::printf("Usage: kumo COMMAND [ARGUMENTS]\n\nCommands:\n");
  for (const Command& command : Commands()) {
    std::printf("  %-10s %s\n", std::string(command.name).c_str(),
                std::string(command.summary).c_str());
  }
  std::printf(
      "\n`kumo COMMAND --help` shows a command's options, `kumo --version` the version.\n"
      "Exit codes: %s\n",
      kExitCodes);
}

void PrintManPage() {
  ManPage page("kumo", "distributed training of neural networks");
  page.Section("SYNOPSIS");
  page.Paragraph("kumo COMMAND [ARGUMENTS]");
  page.Section("DESCRIPTION");
  page.Paragraph(kAbout);
  page.Section("COMMANDS");
  std::string pages;
  for (const Command& command : Commands()) {
    page.Item(command.name, command.summary);
    pages += ManPage::Reference("kumo " + std::string(command.name)) + ", ";
  }
  page.Section("OPTIONS");
  page.Item("--help",
            "Print the commands and exit; kumo COMMAND --help prints a command's options");
  page.Item("--version", "Print version, commit, backends and instruction set, and exit");
  page.Section("EXIT STATUS");
  page.Paragraph(kExitCodes);
  page.Section("SEE ALSO");
  page.Paragraph(pages + "kumo-server(1), kumo-worker(1), kumo-data(1)");
  std::fputs(page.text().c_str(), stdout);
}

void PrintWords(const CliEnvironment& environment) {
  std::printf("[kumo]\n--help\n--version\n");
  std::fflush(stdout);
  const std::vector<std::string> question = {"--help=words"};
  for (const Command& command : Commands()) command.run(environment, question);
}

}  // namespace

bool PrintOverview(const CliEnvironment& environment, const std::string& format) {
  if (format == "--help" || format == "-h" || format == "help") {
    PrintHelp();
  } else if (format == "--help=man") {
    PrintManPage();
  } else if (format == "--help=words") {
    PrintWords(environment);
  } else {
    return false;
  }
  return true;
}

}  // namespace kumo
