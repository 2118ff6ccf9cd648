// kumo predict: kumo-worker computes the probabilities; this finds the checkpoint.
#include "cli/command.h"
#include "cli/model_arguments.h"

namespace kumo {

int RunPredict(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo predict");
  ModelArguments model(environment);
  std::vector<std::string> inputs;
  std::string format = "table";
  int top = 5;
  CommandLine line("kumo predict",
                   "Says which classes a checkpoint's network sees in images, with\n"
                   "probabilities.");
  model.AddTo(&line);
  line.AddRepeated("input", "PATH",
                   "An image (JPEG, PNG), or a folder or an archive (tar, tar.gz, zip) of images; "
                   "may be repeated. What is of another size or colour than the network's is cut "
                   "to its proportions, scaled and made grey or coloured",
                   &inputs);
  line.AddOption("top", "K", {.min = 1, .max = 1'000'000}, "The likeliest classes of each image",
                 &top);
  line.AddOption("format", "FORMAT", {.values = {"table", "json", "csv"}}, "What to print",
                 &format);
  const auto check = [&] {
    return inputs.empty() ? InvalidArgument("--input PATH is missing: an image to look at")
                          : OkStatus();
  };
  if (const auto end = ParseOrEnd(environment, last_words, args, &line, check)) return *end;
  Result<std::vector<std::string>> command = model.Command();
  if (!command.ok()) return last_words.Say(command.status());
  for (const std::string& input : inputs) command->insert(command->end(), {"--predict", input});
  command->insert(command->end(), {"--format", format, "--top", std::to_string(top)});
  return RunWorker(last_words, *std::move(command));
}

}  // namespace kumo
