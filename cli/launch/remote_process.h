// Remote process: one program of a job on another host, as if it were a child of this process: its
// output comes here, signals go there, and it ends with the same status. Nothing is left running on
// either side:
//
//   kumo launch -> kumo remote --host beta -> ssh beta -> kumo remote --serve -> kumo-worker ...
//                  (NearSide)                             (FarSide)
//
// Protocol. The near side writes to ssh's stdin: the length of a remote::Start (4 bytes,
// little-endian), the Start, then one byte per signal (its number), and regularly a byte 0 as
// heartbeat. The far side kills the program at the end of the stream, or after Start.silence_s
// without data: the network may have failed, and the program may already run elsewhere. Stdout and
// stderr are the program's own. The far side ends with the program's exit code, or 128 + the signal
// that killed it; ssh passes that on, and ends with 255 for its own failures. If the Start's
// environment has an idle mark (common/settings/worker_program.h), the far side gives the program
// one on its own host, and ends with kTookNoPart if the program ends well and the mark is there.
//
// Functions; each is the main loop of its process, on the main thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/process/signals.h"
#include "common/base/status.h"
#include "proto/remote.pb.h"

namespace kumo {

inline constexpr double kUsualSilenceS = 20;
inline constexpr double kLongestSilenceS = 3600;
inline constexpr int kNobodyThere = 255;  // ssh's own failures
inline constexpr int kTookNoPart = 254;

struct RemoteHost {
  std::string host;              // "me@beta"
  std::vector<std::string> ssh;  // program and arguments
  std::string kumo;              // path of kumo on the host
};

// Near side: runs the program to its end, passing signals on. Returns its exit code, or 128 + the
// signal that killed it; removes the idle mark if the program took part. Unavailable, with ssh's
// message, if the host cannot be reached or the connection is lost; the errors of starting ssh.
Result<int> RunOnHost(const RemoteHost& host, const remote::Start& start, StopSource* signals);

// Far side: input_fd is the stream from the near side. Returns the same as RunOnHost, or
// kTookNoPart.
// InvalidArgument for an invalid stream, FailedPrecondition if the program cannot be started;
// Unavailable if it cannot be started for the moment, or the near side is gone.
Result<int> ServeRemote(int input_fd, StopSource* signals);

}  // namespace kumo
