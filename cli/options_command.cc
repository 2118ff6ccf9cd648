#include <cstdio>

#include "cli/command.h"
#include "common/options/experiment_text.h"

namespace kumo {

int RunOptions(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words("kumo options", environment.termination_log);
  bool markdown = false;
  CommandLine line("kumo options",
                   "Lists every setting of an experiment file: default, unit, allowed values.");
  line.AddFlag("markdown", "Print docs/experiments.md", &markdown);
  const Status status = line.Parse(args);
  if (!status.ok()) return last_words.Say(ExitCode::kUsage, status.message());
  const std::string text =
      line.help_asked() ? line.Help() : (markdown ? OptionsMarkdown() : OptionsHelp());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace kumo
