// kumo export: kumo-worker writes the file; this finds the checkpoint.
#include "cli/command.h"
#include "cli/model_arguments.h"

namespace kumo {

int RunExport(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo export");
  ModelArguments model(environment);
  std::string out, format;
  bool fold = false;
  bool pixels = false;
  CommandLine line("kumo export",
                   "Writes a checkpoint's weights, or the network with them, to a file of other\n"
                   "programs': ONNX (the network), safetensors or numpy's npz (weights by name).");
  model.AddTo(&line);
  line.AddOption("out", "PATH", Allowed(), "The file to write", &out, "required");
  line.AddOption("format", "FORMAT", {.values = {"onnx", "safetensors", "npz"}}, "What to write",
                 &format, "by the ending of --out");
  line.AddFlag("fold-batch-norm",
               "Make batch normalisation part of the convolution or the fully connected layer "
               "before it: the same function but for rounding, with fewer layers",
               &fold);
  line.AddFlag(
      "pixels",
      "Let the ONNX model take pixels, 0 to 255, and apply data.scale, data.subtract_mean, "
      "data.mean and data.std itself; without, it takes what these make of pixels",
      &pixels);
  const auto check = [&] {
    return out.empty() ? InvalidArgument("--out PATH is missing: where to write") : OkStatus();
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return exit_reporter.Report(command.status());
  command->insert(command->end(), {"--export", out});
  if (!format.empty()) command->insert(command->end(), {"--format", format});
  if (fold) command->push_back("--fold-batch-norm");
  if (pixels) command->push_back("--pixels");
  return RunWorker(exit_reporter, *std::move(command));
}

}  // namespace kumo
