// One program of a job on another host, as if it were a child of this process: what it prints comes
// here, signals go there, and it ends as it does there. Nothing is left running on either side:
//
//   kumo launch -> kumo remote --host beta -> ssh beta -> kumo remote --serve -> kumo-worker ...
//                  (NearSide)                             (FarSide)
//
// The near side writes to ssh's stdin: the length of a remote::Start (4 bytes, little-endian), the
// Start, then a byte for each signal (its number), and now and then a byte 0 while it lives. The
// far side kills the program when that ends, or when nothing has come for
// Start.silence_s: somebody pulled a cable, and this program may be running elsewhere by now.
// Stdout and stderr are the program's own. The far side ends with the program's exit code, or 128
// and the signal that killed it; ssh hands that on, and ends with 255 where it fails itself.
//
// Functions; each is all that its process does, on its main thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/process/signals.h"
#include "common/base/status.h"
#include "proto/remote.pb.h"

namespace kumo {

inline constexpr double kLongestSilenceS = 3600;
inline constexpr int kNobodyThere = 255;  // ssh's own failure

struct RemoteHost {
  std::string host;              // "me@beta"
  std::vector<std::string> ssh;  // the program and its own arguments
  std::string kumo;              // this program's path there
};

// Runs the program to its end; signals that come are handed on. Returns its exit code, or 128 and
// the signal that killed it. Unavailable, with ssh's words, where the host is not reached or no
// longer; the errors of starting ssh.
Result<int> RunOnHost(const RemoteHost& host, const remote::Start& start, StopSource* signals);

// The other end: input_fd is what the near side writes to. Returns what RunOnHost does.
// InvalidArgument for nonsense on it, FailedPrecondition where the program cannot be started there;
// Unavailable where the near side is gone.
Result<int> ServeRemote(int input_fd, StopSource* signals);

}  // namespace kumo
