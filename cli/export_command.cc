// kumo export: finds the checkpoint; kumo-worker writes the file.
#include <optional>

#include "cli/arguments/model_arguments.h"
#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/settings/output_format.h"

namespace kumo {

int RunExport(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo export");
  ModelArguments model(environment);
  std::string out;
  std::optional<ExportFormat> format;
  bool fold = false;
  bool pixels = false;
  bool nms = false;
  CommandLine line(
      "kumo export",
      "Exports a checkpoint's weights, or the network with weights, to formats of other\n"
      "programs: ONNX (network), safetensors or numpy's npz (weights by name).");
  model.AddTo(&line);
  line.AddOption("out", "PATH", Allowed(), "File to write", &out, "required");
  line.AddOption("format", "FORMAT", AllowedChoices<ExportFormat>(), "File format", &format,
                 "from the ending of --out");
  line.AddFlag("fold-batch-norm",
               "Fold batch normalisation into the preceding convolution or fully connected layer: "
               "the same function up to rounding, with fewer layers",
               &fold);
  line.AddFlag("pixels",
               "The ONNX model takes pixels, 0 to 255, and applies data.scale, data.subtract_mean, "
               "data.mean and data.std itself; otherwise it takes the result of these settings",
               &pixels);
  line.AddFlag("nms",
               "The ONNX model of a detector chooses the detections of each image by non-maximum "
               "suppression, as evaluation does; otherwise it gives all boxes with their scores",
               &nms);
  line.AlsoCalled("non-maximum-suppression end2end postprocess");
  const auto check = [&] {
    return out.empty() ? InvalidArgument("--out PATH is missing: name the file to write")
                       : OkStatus();
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return exit_reporter.Report(command.status());
  command->push_back("--export=" + out);
  if (format) command->insert(command->end(), {"--format", WriteValue(*format)});
  if (fold) command->push_back("--fold-batch-norm");
  if (pixels) command->push_back("--pixels");
  if (nms) command->push_back("--nms");
  return RunProgram(exit_reporter, *std::move(command));
}

}  // namespace kumo
