// A child that does not outlive its parent (Linux: PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include "common/base/status.h"

namespace kumo {

// The kernel sends this process `signal` when the *thread* that forked it ends, so fork from a
// thread that lives as long as the parent. Survives execve of a program that is not set-user-ID.
// `parent` is the pid of the parent as it knew it before the fork: where it has died already the
// kernel would never send the signal, and this returns Aborted; the caller then leaves at once.
// Async-signal-safe but for the error's text: call it between fork and exec.
Status DieWithParent(pid_t parent, int signal);

}  // namespace kumo
