// kumo import: names the files; kumo-worker reads the model and writes them.
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/base/file.h"

namespace kumo {
namespace {

struct ImportArguments {
  std::string model;
  std::string network, weights;  // "": beside the working directory's other files, by the model's
  std::string input_shape, loss;
  std::string binary_directory;
  bool force = false;
};

CommandLine MakeCommandLine(ImportArguments* args) {
  CommandLine line(
      "kumo import",
      "Converts an ONNX model, as written by PyTorch's torch.onnx.export or by kumo export,\n"
      "to a network file and a file of its weights. Nodes without a counterpart in Kumo\n"
      "are named.");
  line.AddPositional("MODEL", "ONNX model", /*required=*/true, &args->model);
  line.AddOption("network", "FILE", {.not_empty = true}, "Network file to write", &args->network,
                 "MODEL's name with .pbtxt");
  line.AddOption("weights", "FILE", {.not_empty = true},
                 "File of the weights to write, .safetensors or .npz", &args->weights,
                 "the network's name with .safetensors");
  line.AddOption("input-shape", "CxHxW", {.not_empty = true},
                 "Extents of a sample, for a model that leaves them free", &args->input_shape,
                 "the model's");
  line.AddOption("loss", "LOSS",
                 {.values = {"softmax_cross_entropy", "mean_squared_error", "huber"}},
                 "Loss of the network, which an ONNX model does not have", &args->loss,
                 "softmax_cross_entropy, or mean_squared_error for Kumo's models of numbers");
  line.AddFlag("force", "Overwrite existing files", &args->force);
  line.AddOption("bin-dir", "DIR", Allowed(), "Folder of kumo-worker", &args->binary_directory,
                 "the folder of kumo");
  line.AddNote(
      "Ops that are understood: docs/export.md#import-a-network-onnx\n\n"
      "PyTorch merges batch normalisations into convolutions unless it exports with "
      "do_constant_folding=False\nand training=torch.onnx.TrainingMode.PRESERVE.");
  line.AddNote(
      "Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 the model is no ONNX "
      "model or\n"
      "has nodes without a counterpart, or a file exists.");
  return line;
}

// Fills in the names that are not given, and refuses to overwrite.
Status ChooseFiles(ImportArguments* args) {
  namespace fs = std::filesystem;
  if (args->network.empty()) args->network = fs::path(args->model).stem().string() + ".pbtxt";
  if (args->weights.empty()) {
    args->weights = fs::path(args->network).replace_extension(".safetensors").string();
  }
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
           fs::weakly_canonical(fs::absolute(b, ignored), ignored);
  };
  const auto are_one = [](const char* a, const char* b, const std::string& file) {
    return InvalidArgument(std::string(a) + " and " + b + " " + file +
                           " are one file; name another file with --network or --weights");
  };
  if (same(args->network, args->weights)) return are_one("--network", "--weights", args->weights);
  if (same(args->model, args->network)) return are_one("MODEL", "--network", args->network);
  if (same(args->model, args->weights)) return are_one("MODEL", "--weights", args->weights);
  PosixFileSystem files;
  for (const std::string& file : {args->network, args->weights}) {
    if (args->force || !files.Exists(file)) continue;
    return FailedPrecondition(file +
                              " exists; choose another name with --network and --weights, or "
                              "overwrite it with --force");
  }
  return OkStatus();
}

}  // namespace

int RunImport(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo import");
  ImportArguments arguments;
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  if (const Status status = ChooseFiles(&arguments); !status.ok()) {
    return exit_reporter.Report(status);
  }
  if (arguments.binary_directory.empty()) arguments.binary_directory = environment.binary_directory;
  std::vector<std::string> command = {JoinPath(arguments.binary_directory, "kumo-worker"),
                                      arguments.model, "--import=" + arguments.network,
                                      "--weights=" + arguments.weights};
  if (!arguments.input_shape.empty()) command.push_back("--input-shape=" + arguments.input_shape);
  if (!arguments.loss.empty()) command.push_back("--loss=" + arguments.loss);
  return RunProgram(exit_reporter, std::move(command));
}

}  // namespace kumo
