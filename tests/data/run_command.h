// Runs a shell command and keeps what it says.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace kumo::test {

struct CommandOutcome {
  int exit_code = -1;  // -1: killed by a signal
  std::string output;  // stdout and stderr
};

inline CommandOutcome RunCommand(const std::string& command) {
  CommandOutcome outcome;
  FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return outcome;
  }
  std::array<char, 4096> piece;
  while (const size_t count = fread(piece.data(), 1, piece.size(), pipe)) {
    outcome.output.append(piece.data(), count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

inline std::string Quoted(const std::string& path) { return "'" + path + "'"; }

}  // namespace kumo::test
