#include <cstdio>

#include "cli/command.h"
#include "common/settings/option_pages.h"
#include "common/settings/settings_json.h"

namespace kumo {

int RunOptions(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo options");
  bool markdown = false;
  bool json = false;
  bool keys = false;
  CommandLine line("kumo options",
                   "Lists all settings of an experiment file: default, unit, allowed values.");
  line.AddFlag("markdown", "Print docs/experiments.md", &markdown);
  line.AddFlag("json", "Print a JSON array with one object per setting", &json);
  line.AddFlag("keys", "Print only the keys, one per line, each with its possible values", &keys);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  if (keys) {
    std::fputs(OptionsKeys().c_str(), stdout);
  } else if (json) {
    std::printf("%s\n", OptionsJson().array().c_str());
  } else if (markdown) {
    std::fputs(OptionsMarkdown().c_str(), stdout);
  } else {
    Print(environment, OptionsHelp());
  }
  return 0;
}

}  // namespace kumo
