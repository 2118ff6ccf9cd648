// A worker's membership of a job: which servers it has joined, in which generation, and which of
// them are silent.
//
// It joins server 0 first, which says what the generation is, and then the others. It joins all of
// them again when server 0 speaks of a newer generation, or does not know it any more; whether what
// it has by then still counts is known when server 0 has welcomed it. Another server that does not
// know it is joined again by itself.
//
// Owned by a Session; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "worker/session/actions.h"

namespace kumo {

class JoinedServers {
 public:
  // hello: what each greeting says; job: what messages carry in Header.job.
  JoinedServers(int servers, const Experiment::Cluster& cluster, wire::Hello hello, uint64_t job,
                TimeUs now);

  enum class Heard {
    kOurs,      // counts
    kOther,     // of another job, or of a generation that is over
    kRejoined,  // the job has gone back: server 0 is to be greeted, and then the others
  };
  Heard Hear(int server, const wire::Header& header, TimeUs now);

  struct Welcomed {
    bool joined = false;  // by a server that had not welcomed the worker
    bool anew = false;    // what the worker had before does not count
  };
  Welcomed OnWelcome(int server, const wire::Welcome& welcome, TimeUs now);
  // The server does not know the worker (any more), and is to be greeted.
  void OnForgotten(int server);
  void OnConnected(int server, TimeUs now);

  // A HELLO without what the worker holds. It is due again some time later, unless it is answered.
  Message Greeting(int server, TimeUs now);
  // What is due: greetings and heartbeats, unless a server has been silent for too long.
  struct Due {
    std::vector<int> greetings;
    bool heartbeats = false;
    std::string lost;  // "server 1 at tcp://beta:7700 does not answer since 601 s"; "": none
  };
  Due Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // What may go out of a call's actions, stamped. Nothing but greetings goes to a server that has
  // not welcomed the worker: what cannot be sent yet is asked when it has.
  WorkerActions Stamp(WorkerActions actions) const;

  bool joined() const { return servers_[0].welcomed; }
  // The first server that has not welcomed the worker; -1 when all have.
  int Missing() const;
  // Servers other than 0 that are silent for longer than a process may be.
  std::vector<int> Unheard() const;
  // The version that the generation starts at.
  int64_t start_version() const { return start_version_; }
  // "server 0 at tcp://host:7700"
  std::string NameOf(int server) const;

 private:
  struct Server {
    bool welcomed = false;
    TimeUs heard = 0;
    bool unheard = false;  // for longer than a process may be silent
    TimeUs next_hello = 0;
  };

  void Rejoin(uint32_t generation);

  Experiment::Cluster cluster_;
  wire::Hello hello_;
  uint64_t job_ = 0;

  std::vector<Server> servers_;
  uint32_t generation_ = 0;         // 0: not welcomed yet
  uint32_t newest_generation_ = 0;  // that server 0 has spoken of
  uint32_t since_ = 0;              // the generation that our leases and requests began in
  int64_t start_version_ = 0;
  TimeUs ticked_at_ = 0, held_up_at_ = 0;
  TimeUs next_heartbeat_ = 0;
};

}  // namespace kumo
