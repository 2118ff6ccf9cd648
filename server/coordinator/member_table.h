// Who takes part in a job, as the coordinator knows it: workers and servers, when each was last
// heard of, and what it says of itself. All of it comes from hellos and heartbeats, so a
// coordinator that was started again learns it anew.
//
// Owned by MembershipTracker, which alone changes it; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Whether a hello came late: from a process that was started, on the same machine, before the one
// that is known under its name.
bool IsLate(const wire::Hello& hello, const wire::Hello& known);

// A report as it is kept and shown: whatever its sender has written into it, its texts are short
// and of one line, and its lists no longer than a job's.
wire::WorkerReport Bounded(wire::WorkerReport report);
wire::ServerReport Bounded(wire::ServerReport report);

struct WorkerMember {
  wire::Hello hello;
  TimeUs seen = 0;
  wire::WorkerReport report;
  std::optional<double> samples_per_second;
  double block_ms = 0;  // smoothed; 0: not known yet
  bool leaving = false;
  bool cut_off = false;  // from another server, which we hear

  // "worker-1 on alpha"
  std::string Name() const { return hello.name() + " on " + hello.host(); }
  bool MayHoldLeases() const { return !leaving && !cut_off; }
  // Takes a new report over and counts the rates.
  void OnReport(const wire::WorkerReport& new_report);

 private:
  // What the rate is counted from: the worker's samples and when it had them.
  double rate_samples_ = 0;
  double rate_at_s_ = 0;
};

struct ServerMember {
  PeerName peer;  // empty until its hello
  wire::Hello hello;
  TimeUs seen = 0;
  wire::ServerReport report;
  bool silent = false;      // for longer than a process may be
  TimeUs back_at = 0;       // it has been heard, and ready, since then
  bool recovering = false;  // was started again, and fetches what it is to hold
  int64_t leaves_at = -1;   // told to leave; may when this version is saved
  bool said_bye = false;    // knows that the job is over, and has left
};

class MemberTable {
 public:
  // host: of server 0 itself, which says no hello. cluster: how often a process is heard, and
  // where servers are.
  MemberTable(int servers, const std::string& host, const Experiment::Cluster& cluster = {});

  std::map<PeerName, WorkerMember> workers;
  std::vector<ServerMember> servers;  // by index
  // Workers that were given up for their silence, and their names: they may be alive all the same,
  // and are told of the job's end.
  std::map<PeerName, std::string> given_up;

  bool Knows(const PeerName& peer) const;
  // The server of that name, where it has joined; server 0 always has.
  std::optional<int> ServerIndex(const PeerName& server) const;
  // The worker of that name; null when it does not take part.
  WorkerMember* Find(const PeerName& worker);
  const WorkerMember* Find(const PeerName& worker) const;
  // Workers that may hold leases: those that were not told to leave, and reach all servers. The
  // time for a block of a worker without a lease counts as not known: it may have been frozen when
  // that was measured.
  std::vector<LeaseTable::Taker> Takers(const LeaseTable& leases) const;

  bool ServersAreReady() const;
  // No round before it is open on any shard, as far as reported, and if `version` says nothing
  // else.
  int64_t OldestOpenRound(int64_t version) const;

  // Partitions whose contribution to a round some shard waits for, as last reported. The list
  // is empty where a shard misses so many that it has not named them all.
  std::vector<int> MissingPartitions(int64_t round) const;

  // How long a process that was heard of at `seen` has been silent, where some heartbeats are
  // missing: sooner than it counts as lost.
  std::optional<TimeUs> Silence(TimeUs seen, TimeUs now) const;
  // Nobody is to be blamed for the time until now.
  void ForgiveSilence(TimeUs now);
  std::vector<PeerName> SilentWorkers(TimeUs now, TimeUs limit) const;
  // A server that a worker does not hear, though we do; none where it hears all.
  std::optional<int> CutOffFrom(const WorkerMember& worker, TimeUs now, TimeUs limit) const;
  // Every worker and every other server that has joined has said goodbye; who was given up has not.
  bool AllHaveLeft() const;

  // "server 1 on beta (silent for 12 s), server 2 at tcp://gamma:7700"; "" when all are there and,
  // where `loading_counts`, ready.
  std::string WaitsForServers(TimeUs now, bool loading_counts) const;
  // "partition 3 of round 812 (worker-5 on b, seen 2 s ago: round 812: trains partition 3)", or
  // "(worker-5 on b, silent for 4 s)"
  // unevaluated: partitions of which an evaluation is waited for when no round is.
  std::string WaitsForPartitions(TimeUs now, const LeaseTable& leases,
                                 const std::vector<int>& unevaluated) const;
  void Describe(TimeUs now, const LeaseTable& leases, wire::JobStatus* status) const;

 private:
  TimeUs silent_after_;
  std::vector<std::string> addresses_;  // of servers
};

}  // namespace kumo
