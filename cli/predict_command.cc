// kumo predict: finds the checkpoint; kumo-worker runs the network.
#include <optional>

#include "cli/arguments/model_arguments.h"
#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/settings/output_format.h"

namespace kumo {

int RunPredict(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo predict");
  ModelArguments model(environment);
  std::vector<std::string> inputs;
  std::optional<AnswerFormat> format;
  int top = 5;
  std::string output, masks;
  std::string prompt, prompts;
  int tokens = 200;
  double temperature = 0.8;
  int most_likely = 0;
  double top_p = 1;
  std::string stop;
  int seed = 1;
  CommandLine line("kumo predict",
                   "Classifies images with a checkpoint's network and prints probabilities, or\n"
                   "prints its output for samples, or continues a text with a language\n"
                   "model.");
  model.AddTo(&line);
  line.AddSeveral(
      "input", "PATH",
      "Images (JPEG, PNG), or folders or archives (tar, tar.gz, zip) of images. Images "
      "of other sizes or colours than the network's are cropped "
      "to its proportions, scaled and converted to grey or colour. For a network "
      "trained on CNTK's text format (data.reader = ctf), or on the numbers of a table: "
      "files of that format, with or without labels",
      &inputs);
  line.AlsoCalled("inputs images image files data");
  line.AddOption("top", "K", {.min = 1, .max = 1'000'000}, "Number of classes to print per sample",
                 &top);
  line.AddOption("output", "NAME", Allowed(),
                 "Output of the network, by its name in the network file", &output,
                 "the first one");
  line.AddOption(
      "masks", "DIR", {.not_empty = true},
      "Folder for masks, if the network classifies each pixel: PNG files with the classes' "
      "numbers, in the network's size",
      &masks, "none");
  line.AddOption("format", "FORMAT", AllowedChoices<AnswerFormat>(),
                 "Output format: of classes table, json or csv; of a text text or json (an object "
                 "a line)",
                 &format, "table; text");
  line.AddOption("prompt", "TEXT", {.not_empty = true, .lines = true},
                 "Text to continue with a language model", &prompt, "none");
  line.AddOption("prompts", "FILE", {.not_empty = true},
                 "File with a text to continue on each line; empty lines are ignored", &prompts,
                 "none");
  line.AddOption("tokens", "N", {.min = 1, .max = 1'000'000},
                 "With --prompt: number of tokens to add", &tokens);
  line.AddOption(
      "temperature", "T", {.min = 0, .max = 100},
      "With --prompt: sampling temperature. Values below 1 sharpen the distribution; 0 always "
      "takes the likeliest token",
      &temperature);
  line.AddOption("most-likely", "K", {.min = 0, .max = 1'000'000},
                 "With --prompt: sample from the K likeliest tokens (top-k); 0: from all",
                 &most_likely);
  line.AddOption("top-p", "P", {.min = 0, .max = 1, .min_excluded = true},
                 "With --prompt: sample from the likeliest tokens whose probabilities add up to P; "
                 "1: from all",
                 &top_p);
  line.AddOption("stop", "TEXT", {.not_empty = true, .lines = true},
                 "With --prompt: end before this text", &stop, "none");
  line.AddOption("seed", "N", {.min = 0, .max = 2'000'000'000}, "With --prompt: sampling seed",
                 &seed);
  const auto check = [&] {
    const bool continues = !prompt.empty() || !prompts.empty();
    if (!prompt.empty() && !prompts.empty()) {
      return InvalidArgument("--prompt and --prompts exclude each other");
    }
    if (inputs.empty() != continues) {
      return InvalidArgument(
          "give --input PATH with an image, --prompt TEXT with a text to continue, or --prompts "
          "FILE with several");
    }
    if (!continues) {
      if (format == AnswerFormat::kText) return InvalidArgument("--format text: requires --prompt");
      return line.RefuseGiven({"tokens", "temperature", "most-likely", "top-p", "stop", "seed"},
                              "requires --prompt");
    }
    if (format == AnswerFormat::kTable || format == AnswerFormat::kCsv) {
      return InvalidArgument("--format " + WriteValue(*format) +
                             ": requires --input; a continuation is printed as text or json");
    }
    return line.RefuseGiven({"top", "output", "masks"}, "requires --input");
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return exit_reporter.Report(command.status());
  // A text may look like an option, so that it stands behind '='.
  if (inputs.empty()) {
    command->insert(command->end(),
                    {prompt.empty() ? "--generate-lines=" + prompts : "--generate=" + prompt,
                     "--tokens", std::to_string(tokens), "--temperature", WriteValue(temperature),
                     "--most-likely", std::to_string(most_likely), "--top-p", WriteValue(top_p),
                     "--seed", std::to_string(seed)});
    if (!stop.empty()) command->push_back("--stop=" + stop);
    if (format) command->insert(command->end(), {"--answers", WriteValue(*format)});
    return RunProgram(exit_reporter, *std::move(command));
  }
  for (const std::string& input : inputs) command->push_back("--predict=" + input);
  command->insert(command->end(), {"--top", std::to_string(top)});
  if (format) command->insert(command->end(), {"--answers", WriteValue(*format)});
  if (!output.empty()) command->push_back("--output=" + output);
  if (!masks.empty()) command->push_back("--masks=" + masks);
  return RunProgram(exit_reporter, *std::move(command));
}

}  // namespace kumo
