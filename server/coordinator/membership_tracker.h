// How processes come into a job and go: their hellos, heartbeats and goodbyes, whose name or place
// a later process has taken, and who has fallen silent or is cut off. It keeps the table of members
// (members.h), and tells what there is new as News, one after another: what follows for leases and
// for the job is for others to say.
//
// Whoever did not listen blames nobody for silence: neither a coordinator that was held up itself,
// nor one that hears nobody at all and so is the one who is cut off.
//
// Owned by the Coordinator; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/coordinator/checkpoints.h"
#include "server/coordinator/member_table.h"
#include "server/protocol/actions.h"

namespace kumo {

struct MemberEvent {
  enum class Kind {
    kHeard,    // nothing more
    kJoined,   // a worker takes part now
    kLeaves,   // a worker was told to leave
    kGone,     // a worker does not take part any more
    kCutOff,   // a worker does not reach a server which we hear
    kReaches,  // it does again
    kServerJoined,
    kServerReplaced,  // a server was started again: what it held is gone with its process
    kServerLost,      // a server is without its part of the weights
  };

  Kind kind = Kind::kHeard;
  PeerName peer = "";           // the worker
  int server = 0;               // the server
  std::string who = "";         // "worker-1 on alpha", "server 1"
  std::string why = "";         // kGone, kCutOff; of a server: what has happened to it
  bool claims = false;          // kJoined: it says that partitions are its own
  bool handed_over = false;     // kGone: everything that it was to hand over is on the servers
  Status failure = OkStatus();  // one that a retry cannot help, on another process neither
};

class MembershipTracker {
 public:
  // host: of server 0 itself, which says no hello.
  MembershipTracker(int servers, const std::string& host, const Experiment::Cluster& cluster,
                    TimeUs now);

  const MemberTable& members() const { return members_; }
  // Nobody is heard any more.
  bool alone() const { return alone_; }

  // A hello, first half: the process whose name or place its sender takes is gone; a worker is told
  // so. FailedPrecondition where the sender's own has been taken, ResourceExhausted where there are
  // too many workers.
  Result<std::optional<MemberEvent>> Replace(const PeerName& from, const wire::Hello& hello,
                                             StepContext* context);
  // Second half: its sender takes part. None where that is nothing new.
  std::optional<MemberEvent> Join(const PeerName& from, const wire::Hello& hello, TimeUs now);

  // A report of a worker or of a server (of server 0 itself too). None where the sender does not
  // take part: a worker is told that it has to join again.
  std::optional<MemberEvent> OnHeartbeat(const PeerName& from, const wire::Header& header,
                                         StepContext* context);
  // None where the sender is no worker that takes part.
  std::optional<MemberEvent> OnBye(const PeerName& from, const wire::WorkerReport& report);

  // Time has `passed` since the last call: decides who may be blamed for it.
  void Listen(TimeUs passed, TimeUs now);
  // The next worker that is gone, was cut off, or is not any more; none when all have been told.
  std::optional<MemberEvent> Next(TimeUs now);

  // A server fetches what it held: it is no loss that it has not got it.
  void MarkRecovering(int server) { members_.servers[server].recovering = true; }
  // The job goes back: what servers have reported is of the time before.
  void ForgetReports();
  // Servers that were told to leave may when `version` is saved, unless an earlier version does for
  // them. Whether there are any.
  bool LetServersLeaveAt(int64_t version, const Checkpoints& checkpoints);

  // "server 1 at tcp://beta:7700, 1 of 2 workers"; "" when `workers` that may hold leases are
  // there, and all servers, and, where `loading_counts`, ready.
  std::string WaitsFor(TimeUs now, bool loading_counts, int workers) const;
  // Workers that may hold leases.
  int Takers() const;

 private:
  MemberEvent OnServerReport(int server, const wire::ServerReport& report, TimeUs now);
  Result<std::optional<MemberEvent>> ReplaceServer(const wire::Hello& hello);
  // Those of one that is cut off from a server, or was.
  std::optional<MemberEvent> NextCut(TimeUs now);
  void MarkSilentServers(TimeUs now);

  TimeUs suspect_after_;
  MemberTable members_;
  std::set<PeerName> replaced_;                          // workers whose name a later process took
  std::set<std::pair<int, uint64_t>> replaced_servers_;  // index and incarnation, likewise
  TimeUs heard_at_;                                      // from anybody
  bool alone_ = false;
};

}  // namespace kumo
