// kumo predict: kumo-worker asks the network; this finds the checkpoint.
#include "cli/command.h"
#include "cli/model_arguments.h"

namespace kumo {

int RunPredict(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo predict");
  ModelArguments model(environment);
  std::vector<std::string> inputs;
  std::string format = "table";
  int top = 5;
  std::string output;
  std::string prompt;
  int tokens = 200;
  double temperature = 0.8;
  int most_likely = 0;
  int seed = 1;
  CommandLine line("kumo predict",
                   "Says which classes a checkpoint's network sees in images, with\n"
                   "probabilities, or what numbers it gives for samples; or, of a\n"
                   "language model, goes on with a text.");
  model.AddTo(&line);
  line.AddSeveral("input", "PATH",
                  "Images (JPEG, PNG), or folders or archives (tar, tar.gz, zip) of images. What "
                  "is of another size or colour than the network's is cut "
                  "to its proportions, scaled and made grey or coloured. Where the network was "
                  "trained on CNTK's text format (data.reader = ctf), files of that, whose labels "
                  "may be missing",
                  &inputs);
  line.AddOption("top", "K", {.min = 1, .max = 1'000'000}, "The likeliest classes of each sample",
                 &top);
  line.AddOption("output", "NAME", Allowed(), "Which of the outputs that the network's file names",
                 &output, "the first one");
  line.AddOption("format", "FORMAT", {.values = {"table", "json", "csv"}}, "What to print",
                 &format);
  line.AddOption("prompt", "TEXT", {.not_empty = true, .lines = true},
                 "A text that a language model is to go on with", &prompt, "none");
  line.AddOption("tokens", "N", {.min = 1, .max = 1'000'000}, "With --prompt: tokens to add",
                 &tokens);
  line.AddOption(
      "temperature", "T", {.min = 0, .max = 100},
      "With --prompt: scores are divided by it before they become probabilities, so below "
      "1 the likely is likelier; 0: the likeliest token is taken",
      &temperature);
  line.AddOption("most-likely", "K", {.min = 0, .max = 1'000'000},
                 "With --prompt: tokens are drawn from so many of the likeliest; 0: from all",
                 &most_likely);
  line.AddOption("seed", "N", {.min = 0, .max = 2'000'000'000},
                 "With --prompt: of what is drawn; the same one draws the same", &seed);
  const auto check = [&] {
    if (inputs.empty() == prompt.empty()) {
      return InvalidArgument(
          "give --input PATH, an image to look at, or --prompt TEXT, one to go on with");
    }
    if (!prompt.empty()) {
      return line.RefuseGiven({"format", "top", "output"},
                              "goes with --input; what follows a --prompt is printed as it comes");
    }
    return line.RefuseGiven({"tokens", "temperature", "most-likely", "seed"}, "goes with --prompt");
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return exit_reporter.Report(command.status());
  if (!prompt.empty()) {
    command->insert(command->end(), {"--generate", prompt, "--tokens", std::to_string(tokens),
                                     "--temperature", WriteValue(temperature), "--most-likely",
                                     std::to_string(most_likely), "--seed", std::to_string(seed)});
    return RunWorker(exit_reporter, *std::move(command));
  }
  for (const std::string& input : inputs) command->insert(command->end(), {"--predict", input});
  command->insert(command->end(), {"--format", format, "--top", std::to_string(top)});
  if (!output.empty()) command->insert(command->end(), {"--output", output});
  return RunWorker(exit_reporter, *std::move(command));
}

}  // namespace kumo
