#include <algorithm>
#include <iostream>
#include <string>

#include "common/base/cores.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/status.h"
#include "common/settings/command_line.h"
#include "data/digits/scene_set.h"
#include "data/program/commands.h"

namespace kumo {
namespace {

constexpr int kMostThreads = 64;

Status Draw(SceneSetOptions options) {
  if (options.threads == 0) options.threads = std::min(UsableCores(), kMostThreads);
  KUMO_ASSIGN_OR_RETURN(const SceneSetOutcome outcome, WriteSceneSet(options));
  std::cout << JoinPath(options.directory, "scenes") << ": " << options.train << " training and "
            << options.validation << " validation pictures of " << options.side << " x "
            << options.side << ", seed " << options.seed
            << (outcome == SceneSetOutcome::kAlreadyThere ? " (were there already)" : "") << "\n";
  return OkStatus();
}

}  // namespace

int RunScenes(std::span<const std::string> args) {
  SceneSetOptions options;
  options.threads = 0;
  CommandLine line(
      "kumo-data scenes",
      "Draws pictures of several digits on a noisy background to DIR/scenes: images, "
      "masks with the\nclass of each pixel (0: background, d + 1: digit d), and "
      "train.csv and validation.csv with the\ncolumns image, mask, and digit_0 to "
      "digit_9 (0 or 1). The same options give the same set; an\nexisting equal set is "
      "kept. For the experiments scenes_unet and scenes_tags.");
  const Allowed scenes{.min = 1, .max = 100'000};
  line.AddOption("out", "DIR", {}, "Output folder, created if necessary; required",
                 &options.directory);
  line.AddOption("train", "N", scenes, "Number of training pictures", &options.train);
  line.AddOption("validation", "N", scenes, "Number of validation pictures", &options.validation);
  line.AddOption("size", "N", {.min = kLeastSceneSide, .max = kMostSceneSide},
                 "Height and width of a picture, in pixels", &options.side);
  line.AddOption("seed", "S", {.min = 0}, "Random seed of the pictures", &options.seed);
  line.AddOption("threads", "N", {.min = 0, .max = kMostThreads},
                 "Number of threads; 0: one per core. The pictures do not depend on it",
                 &options.threads);
  line.AddFlag("force", "Overwrite another set in DIR/scenes", &options.force);
  line.AddNote(
      "Exit codes: 0 done; 64 wrong command line; 75 temporary failure: the disk is full; 78 DIR "
      "cannot\nbe written or holds another set.");
  const ExitReporter exit_reporter("kumo-data scenes", ExitReporter::DefaultTerminationLog());
  Status parsed = line.Parse(args);
  if (parsed.ok() && !line.help_asked() && options.directory.empty()) {
    parsed =
        InvalidArgument("--out DIR is missing: name the output folder (kumo-data scenes --help)");
  }
  if (!parsed.ok()) return exit_reporter.Report(ExitCode::kUsage, parsed.message());
  if (line.help_asked()) {
    std::cout << line.Help();
    return static_cast<int>(ExitCode::kDone);
  }
  const Status drawn = Draw(options);
  return drawn.ok() ? static_cast<int>(ExitCode::kDone) : exit_reporter.Report(drawn);
}

}  // namespace kumo
