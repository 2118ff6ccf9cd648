#include <algorithm>
#include <iostream>
#include <string>

#include "common/base/cores.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/version.h"
#include "common/settings/command_line.h"
#include "data/digits/digit_set.h"
#include "data/program/commands.h"

namespace kumo {
namespace {

constexpr int kMaxThreads = 64;

constexpr char kAbout[] =
    "Draws a set of handwritten-looking digits, 28 x 28 pixels, and writes it as gzip'd IDX files\n"
    "with MNIST's names to DIR/mnist; pass DIR to other commands as --set data.directory=DIR or\n"
    "KUMO_DATA=DIR. The same options give the same set; an existing equal set is kept.\n"
    "Files of another origin are not overwritten.";

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 64 wrong command line; 75 temporary failure: the disk is full; 78 DIR "
    "cannot\n"
    "be written or holds files of another origin.";

CommandLine Describe(DigitSetOptions& options) {
  CommandLine line("kumo-data digits", kAbout);
  const Allowed images{.min = 1, .max = 10'000'000};
  line.AddOption("out", "DIR", {}, "Output folder, created if necessary; required",
                 &options.directory);
  line.AddOption("train", "N", images, "Number of training images", &options.train);
  line.AddOption("validation", "N", images, "Number of validation images", &options.validation);
  line.AddOption("seed", "S", {.min = 0}, "Random seed of the images", &options.seed);
  line.AddOption("threads", "N", {.min = 0, .max = kMaxThreads},
                 "Number of threads; 0: one per core. The images do not depend on it",
                 &options.threads);
  line.AddFlag("force", "Overwrite files of another origin, such as MNIST's own", &options.force);
  line.AddVersion();
  line.AddNote(
      "Other commands: kumo-data scenes draws pictures with masks (kumo-data scenes --help); "
      "kumo-data\nshow FILE shows an experiment's data (kumo data --help).");
  line.AddNote(kExitCodes);
  return line;
}

Status ParseCommand(CommandLine& line, const DigitSetOptions& options,
                    std::span<const std::string> args) {
  KUMO_RETURN_IF_ERROR(line.Parse(args));
  if (options.directory.empty() && !line.help_asked() && !line.version_asked()) {
    return InvalidArgument("--out DIR is missing: name the output folder (kumo-data --help)");
  }
  return OkStatus();
}

}  // namespace

int RunDigits(std::span<const std::string> args) {
  const ExitReporter exit_reporter("kumo-data", ExitReporter::DefaultTerminationLog());
  DigitSetOptions options;
  options.threads = 0;
  CommandLine line = Describe(options);
  const Status parsed = ParseCommand(line, options, args);
  if (!parsed.ok()) return exit_reporter.Report(ExitCode::kUsage, parsed.message());
  if (line.version_asked()) {
    std::cout << VersionText("kumo-data");
    return static_cast<int>(ExitCode::kDone);
  }
  if (line.help_asked()) {
    std::cout << line.Help();
    return static_cast<int>(ExitCode::kDone);
  }
  if (options.threads == 0) {
    options.threads = std::min(UsableCores(), kMaxThreads);
  }
  PosixFileSystem files;
  const auto outcome = WriteDigitSet(files, options);
  if (!outcome.ok()) return exit_reporter.Report(outcome.status());
  std::cout << JoinPath(options.directory, "mnist") << ": " << options.train << " training and "
            << options.validation << " validation images, seed " << options.seed
            << (outcome.value() == DigitSetOutcome::kAlreadyThere ? " (were there already)" : "")
            << "\n";
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace kumo
