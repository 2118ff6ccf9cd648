// Process start: what main sets up before anything else: standard streams, the tie to a parent
// process, and the allocator.
#pragma once

#include <sys/types.h>

#include "common/base/status.h"

namespace kumo {

// Opens /dev/null for each standard descriptor that is closed; otherwise the next opened file or
// socket would get its number and receive printed text. Call it first in main.
void OpenStandardStreams();

// Ties a child to its parent's life (Linux: PR_SET_PDEATHSIG). Requests that the kernel sends this
// process `signal` when the *thread* that forked it ends; so fork from a thread that lives as long
// as the parent. Survives execve of a program that is not set-user-ID. parent: the parent's pid,
// taken before the fork. If the parent has already died, the kernel would never send the signal:
// returns Aborted, and the caller exits at once. Async-signal-safe except for the error's text:
// call it between fork and exec.
Status DieWithParent(pid_t parent, int signal);

// Tunes the allocator for large messages: keeps freed memory in the process for the next message.
// ZeroMQ allocates each received chunk with malloc; by default glibc maps and unmaps each block of
// 1 MiB, and the kernel zeroes its pages every time, which is most of the cost of receiving. The
// price: the process keeps its high-water mark until it ends.
//
// Call once, first thing in main, before a second thread exists.
void TuneMallocForLargeMessages();

}  // namespace kumo
