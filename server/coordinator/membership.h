// Membership: which workers and servers take part in the job, and how they come and go.
//
// MembershipTracker watches hellos, heartbeats, goodbyes and silence. It keeps the MemberTable and
// returns each change as a MemberEvent; what follows for leases and for the job is decided by its
// caller. admission.h says which processes may join.
//
// Invariants:
// - All of it is soft state: a coordinator that was started again learns it from hellos and
//   heartbeats.
// - One process per name. A process that joins under the name of a worker, or at the index of a
//   server, replaces the former process; the former one is refused from then on. Of two processes
//   on one machine the later one wins, also if its hello arrives first.
// - A silent worker is given up; its partitions are computed by others. So is a worker whose
//   connection was closed and that does not connect anew: it was killed. A silent server is waited
//   for, since its weights may still be there.
// - A coordinator that was itself stalled, or that hears no process at all, suspends failure
//   detection: the fault may be its own.
//
// State machines without I/O. The Coordinator owns the tracker, with its table, and the two checks;
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/coordinator/load_balancer.h"
#include "server/protocol/actions.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Whether a hello is late: its process was started, on the same machine, before the process that is
// known under the name.
bool IsLate(const wire::Hello& hello, const wire::Hello& known);

// A report with bounded texts of one line and bounded lists, whatever its sender has written.
wire::WorkerReport Bounded(wire::WorkerReport report);
wire::ServerReport Bounded(wire::ServerReport report);

struct WorkerMember {
  wire::Hello hello;
  TimeUs seen = 0;
  wire::WorkerReport report;
  std::optional<double> samples_per_second;
  double block_ms = 0;  // smoothed time of a block; 0: not known yet
  // Begin of the block or the evaluation that the last report says is computed.
  std::optional<TimeUs> computing_since;
  bool leaving = false;
  bool cut_off = false;  // does not reach a server that the coordinator hears
  // Its connection to server 0 has ended then, and there is no other one.
  std::optional<TimeUs> unconnected_since;

  // "worker-1 on alpha"
  std::string Name() const { return hello.name() + " on " + hello.host(); }
  bool MayHoldLeases() const { return !leaving && !cut_off; }
  // Takes a new report over and updates the rates.
  void OnReport(const wire::WorkerReport& new_report, TimeUs now);

 private:
  // Start of the interval over which the rate is measured.
  double rate_samples_ = 0;
  double rate_at_s_ = 0;
};

struct ServerMember {
  PeerName peer;  // empty until its hello
  wire::Hello hello;
  TimeUs seen = 0;
  wire::ServerReport report;
  bool silent = false;      // for longer than cluster.suspect_after_s
  TimeUs back_at = 0;       // heard, and ready, since then
  bool recovering = false;  // was started again and fetches its shard
  int64_t leaves_at = -1;   // was told to leave, and may when this version is saved; -1: was not
  bool said_bye = false;    // knows that the job is over, and has left
};

// Member table: the members with the last message of each. Changed by MembershipTracker only.
class MemberTable {
 public:
  // host: of server 0 itself, which sends no hello. cluster: heartbeat interval and addresses of
  // the servers.
  MemberTable(int servers, const std::string& host, const Experiment::Cluster& cluster = {});

  std::map<PeerName, WorkerMember> workers;
  std::vector<ServerMember> servers;  // by index
  // Names of workers that were given up for their silence. They may be alive, and are told of the
  // job's end.
  std::map<PeerName, std::string> given_up;

  bool Knows(const PeerName& peer) const;
  // Index of a server that has joined; server 0 always has. nullopt for other peers.
  std::optional<int> ServerIndex(const PeerName& server) const;
  // Null if no such worker takes part.
  WorkerMember* Find(const PeerName& worker);
  const WorkerMember* Find(const PeerName& worker) const;
  // Workers that may hold leases: not told to leave, and reaching all servers. The block time of a
  // worker without a lease counts as unknown, since the worker may have been frozen when it was
  // measured; Leasing decides from when on.
  std::vector<Taker> Takers(const LeaseTable& leases) const;

  bool ServersAreReady() const;
  // A lower bound: no earlier round is open on any shard, by the reports and by `version`, which
  // chunk 0 has. without_report: the bound for a server that has not reported.
  int64_t OldestOpenRound(int64_t version, int64_t without_report) const;

  // Partitions whose contribution to a round some shard waits for, by the reports. Empty if a shard
  // misses so many that its report does not list all of them.
  std::vector<int> MissingPartitions(int64_t round) const;

  // How long a process has been silent that was last heard at `seen`; nullopt unless several
  // heartbeats are missing. Shorter than cluster.suspect_after_s.
  std::optional<TimeUs> Silence(TimeUs seen, TimeUs now) const;
  // Likewise of a worker; one without a connection is silent at once.
  std::optional<TimeUs> Silence(const WorkerMember& worker, TimeUs now) const;
  // Restarts the silence of every member.
  void ForgiveSilence(TimeUs now);
  std::vector<PeerName> SilentWorkers(TimeUs now, TimeUs limit) const;
  // Workers whose connection ended longer ago than the limit, and that have not made another one.
  std::vector<PeerName> UnconnectedWorkers(TimeUs now, TimeUs limit) const;
  // A server that the worker does not hear although the coordinator does; nullopt if there is none.
  std::optional<int> CutOffFrom(const WorkerMember& worker, TimeUs now, TimeUs limit) const;
  // Every worker, and every other server that has joined, has said goodbye. False while a worker is
  // given up, since it may come back.
  bool AllHaveLeft() const;

  // "server 1 on beta (silent for 12 s), server 2 at tcp://gamma:7700"; "" if all servers are there
  // and, if `loading_counts`, ready.
  std::string WaitsForServers(TimeUs now, bool loading_counts) const;
  // "partition 3 of round 812 (worker-5 on b, seen 2 s ago: round 812: trains partition 3)", or
  // "(worker-5 on b, silent for 4 s)"
  // unevaluated: partitions whose evaluation is waited for if no round is.
  std::string WaitsForPartitions(TimeUs now, const LeaseTable& leases,
                                 const std::vector<int>& unevaluated) const;
  void Describe(TimeUs now, const LeaseTable& leases, wire::JobStatus* status) const;

 private:
  TimeUs silent_after_;
  std::vector<std::string> addresses_;  // of servers
};

struct MemberEvent {
  enum class Kind {
    kHeard,           // a heartbeat without a change
    kJoined,          // a worker takes part from now on
    kLeaves,          // a worker was told to leave
    kGone,            // a worker does not take part any more
    kCutOff,          // a worker does not reach a server that the coordinator hears
    kReaches,         // it reaches all servers again
    kServerJoined,    // a server takes part from now on
    kServerReplaced,  // a server was started again: its former process is gone with its shard
    kServerLost,      // a server has no shard although it should
  };

  Kind kind = Kind::kHeard;
  PeerName peer = "";           // the worker
  int server = 0;               // the server
  std::string who = "";         // "worker-1 on alpha", "server 1"
  std::string why = "";         // of kGone and kCutOff; of a server: the whole sentence
  bool claims = false;          // kJoined: the worker claims partitions
  bool left = false;            // kGone: it said so itself
  bool handed_over = false;     // kGone: all states that it was to hand over are on the servers
  Status failure = OkStatus();  // an error that no retry, on any process, can cure
};

// Membership tracker. Owned by the Coordinator; one thread.
class MembershipTracker {
 public:
  // host: of server 0 itself, which sends no hello.
  MembershipTracker(int servers, const std::string& host, const Experiment::Cluster& cluster,
                    TimeUs now);

  const MemberTable& members() const { return members_; }
  // The coordinator hears no other process any more.
  bool alone() const { return alone_; }

  // A hello, first half: the process whose name or index the sender takes over is gone; a worker is
  // told so. FailedPrecondition if a later process has taken the sender's own name or index;
  // ResourceExhausted if there are too many workers.
  Result<std::optional<MemberEvent>> Replace(const PeerName& from, const wire::Hello& hello,
                                             StepContext* context);
  // Second half: the sender takes part. nullopt if it did already.
  std::optional<MemberEvent> Join(const PeerName& from, const wire::Hello& hello, TimeUs now);

  // A report of a worker or of a server (server 0 itself too). nullopt if the sender does not take
  // part; a worker is told to join again.
  std::optional<MemberEvent> OnHeartbeat(const PeerName& from, const wire::Header& header,
                                         StepContext* context);
  // nullopt if the sender is not a worker that takes part.
  std::optional<MemberEvent> OnBye(const PeerName& from, const wire::WorkerReport& report);

  // A worker has sent something.
  void OnHeard(const PeerName& from, TimeUs now);
  // A worker's connection has ended, or the worker is heard over a new one.
  void OnPeerConnection(const PeerName& from, bool connected, TimeUs now);
  // Time has `passed` since the last call: decides whether silence counts.
  void Listen(TimeUs passed, TimeUs now);
  // The next worker that is gone, cut off, or not cut off any more; nullopt if there are no more.
  std::optional<MemberEvent> Next(TimeUs now);

  // A server fetches its shard: until it has it, the missing shard is no loss.
  void MarkRecovering(int server) { members_.servers[server].recovering = true; }
  // The job goes back: the servers' reports are outdated.
  void ForgetReports();
  // Servers that were told to leave may leave when `version` is saved, unless an earlier version is
  // enough. is_secured: whether a version is saved or being saved. Returns whether there are any.
  bool LetServersLeaveAt(int64_t version, const std::function<bool(int64_t)>& is_secured);

  // "server 1 at tcp://beta:7700, 1 of 2 workers"; "" if `workers` workers may hold leases, and all
  // servers are there and, if `loading_counts`, ready.
  std::string WaitsFor(TimeUs now, bool loading_counts, int workers) const;
  // Number of workers that may hold leases.
  int CountTakers() const;

 private:
  MemberEvent OnServerReport(int server, const wire::ServerReport& report, TimeUs now);
  Result<std::optional<MemberEvent>> ReplaceServer(const wire::Hello& hello);
  MemberEvent GiveUp(const PeerName& peer, std::string why);
  // The next worker that is cut off from a server, or no longer is.
  std::optional<MemberEvent> NextCut(TimeUs now);
  void MarkSilentServers(TimeUs now);

  TimeUs suspect_after_;
  MemberTable members_;
  std::set<PeerName> replaced_;  // workers whose name a later process has taken
  std::set<std::pair<int, uint64_t>> replaced_servers_;  // index and incarnation, likewise
  TimeUs heard_at_;                                      // last message of any other process
  bool alone_ = false;
};

}  // namespace kumo
