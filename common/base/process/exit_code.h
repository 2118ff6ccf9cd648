// What a process's exit code tells whoever started it (a person, `kumo launch`, Kubernetes).
//
//   0   done
//   1   crashed: a bug or a library's failure; starting it again may help
//   64  usage: the command line is wrong; do not start it again
//   75  unavailable or preempted: nothing is wrong with the job; start it again
//   78  bad configuration: experiment, data or a mismatch; do not start it again
//
// The numbers are sysexits.h's.
#pragma once

#include <string>

#include "common/base/status.h"

namespace kumo {

enum class ExitCode : int {
  kDone = 0,
  kCrashed = 1,
  kUsage = 64,
  kUnavailable = 75,
  kBadConfiguration = 78,
};

// What a process ends with because of `code`: kUnavailable for what a later start may find mended
// (Unavailable, Aborted, ResourceExhausted), kCrashed for Internal, kBadConfiguration for the rest.
ExitCode ExitCodeOf(StatusCode code);
inline ExitCode ExitCodeOf(const Status& status) { return ExitCodeOf(status.code()); }

// "78 (bad configuration)"; for numbers without a meaning of ours just the number.
std::string ExitCodeText(int code);

}  // namespace kumo
