// kumo detect: finds the checkpoint; kumo-worker runs the detector.
#include "cli/arguments/model_arguments.h"
#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/detection/detections.h"

namespace kumo {

int RunDetect(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo detect");
  ModelArguments model(environment);
  std::vector<std::string> images;
  DetectionRule rule = {.least_score = kShownScore};
  int batch = 16;
  std::string out, pictures;
  CommandLine line(
      "kumo detect",
      "Finds objects in images with a checkpoint's detector, and prints their classes,\n"
      "scores and boxes as JSON. Boxes are left, top, right, bottom in pixels of the\n"
      "upright image.");
  model.AddTo(&line);
  line.AddPositionals("IMAGE",
                      "Images (JPEG, PNG), or folders or archives (tar, tar.gz, zip) of images. "
                      "They are stretched to the network's input",
                      &images);
  line.AddOption("score", "S", {.min = 0, .max = 1},
                 "Least score of an object, a probability; evaluation counts from 0.01 on",
                 &rule.least_score);
  line.AlsoCalled("confidence conf threshold score-threshold min-score least-score");
  line.AddOption("overlap", "U", {.min = 0, .max = 1},
                 "Largest overlap of two objects of a class, as intersection over union: of boxes "
                 "that overlap more only the best one is kept (non-maximum suppression)",
                 &rule.overlap);
  line.AlsoCalled("nms iou nms-threshold iou-threshold");
  line.AddOption("most", "N", {.min = 1, .max = 1'000'000},
                 "Largest number of objects in an image; the best scores are kept", &rule.most);
  line.AlsoCalled("max max-detections top limit");
  line.AddOption(
      "batch", "N", {.min = 1, .max = 4096},
      "Images that are computed together; the CPU takes little more time for 16 than for one, and "
      "more take more memory",
      &batch);
  line.AlsoCalled("batch-size minibatch");
  line.AddOption("out", "PATH", {.not_empty = true}, "File to write the JSON to", &out, "stdout");
  line.AlsoCalled("output json file");
  line.AddOption("pictures", "DIR", {.not_empty = true},
                 "Folder for copies of the images, as PNG, in which boxes, class names and scores "
                 "are drawn; it is made if it is missing",
                 &pictures, "none");
  line.AlsoCalled("draw drawn visualize visualise plot save-images save-dir");
  const auto check = [&] {
    return images.empty() ? InvalidArgument(
                                "name an image, or a folder or archive of images, behind the "
                                "experiment: kumo detect FILE IMAGE...")
                          : OkStatus();
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return exit_reporter.Report(command.status());
  for (const std::string& image : images) command->push_back("--detect=" + image);
  command->insert(command->end(),
                  {"--score", WriteValue(rule.least_score), "--overlap", WriteValue(rule.overlap),
                   "--most", std::to_string(rule.most), "--batch", std::to_string(batch)});
  if (!out.empty()) command->push_back("--detections=" + out);
  if (!pictures.empty()) command->push_back("--pictures=" + pictures);
  return RunProgram(exit_reporter, *std::move(command));
}

}  // namespace kumo
