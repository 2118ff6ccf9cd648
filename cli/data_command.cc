// kumo data: kumo-data opens the data; this passes the question on.
#include <cstdio>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "common/base/file.h"

namespace kumo {

int RunData(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo data");
  ChildSpec spec;
  spec.command = {JoinPath(environment.binary_directory, "kumo-data"), "show"};
  spec.command.insert(spec.command.end(), args.begin(), args.end());
  std::fflush(stdout);  // what this process has said comes first
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  return end.ok() ? end->code : last_words.Say(end.status());
}

}  // namespace kumo
