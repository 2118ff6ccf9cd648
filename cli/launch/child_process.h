// Starting a program and saying how it ended. Nothing that it starts outlives this process: each
// child is killed by the kernel when its parent dies.
//
// Functions; to be called from a thread that lives as long as the process (see DieWithParent).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct ChildSpec {
  std::vector<std::string> command;                              // command[0]: path of the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  std::string output_file;  // stdout and stderr are appended to it; "": this process's own
  std::string error_file;   // stderr is appended to it instead; "": as stdout
  int input_fd = -1;        // its stdin, borrowed; -1: an empty one
  bool own_group = true;    // false: it is of this process's group
};

struct ChildEnd {
  int code = 0;  // exit code, or 128 + the signal that killed it
};

// Of what waitpid says of a child that has ended: its exit code, or 128 + the signal that killed
// it.
int ExitStatus(int status);

// Starts the program in a process group of its own (Ctrl-C on the terminal reaches only the
// launcher) where the spec does not say otherwise, with default signal handlers, and SIGKILL at the
// death of this process. NotFound when the program cannot be executed, Internal when the system
// refuses.
Result<pid_t> StartChild(const ChildSpec& spec);

// Runs it to its end; stdout and stderr go to this process's own or, where `output` is not null,
// there.
Result<ChildEnd> RunChild(const ChildSpec& spec, std::string* output);

// "kumo-worker worker-3: no network" -> "no network": what a process of ours said, for whoever has
// named it already.
std::string WithoutProgram(const std::string& words);

// Why a process ended, in one line: the termination log that it wrote, else the last line of its
// output file behind its first `output_start` bytes, which earlier processes wrote (a failed
// CHECK's line, where there is one), WithoutProgram. "" when neither says anything.
std::string ExitReporterOf(const std::string& termination_log, const std::string& output_file,
                        uintmax_t output_start);

}  // namespace kumo
