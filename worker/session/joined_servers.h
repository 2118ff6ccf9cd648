// Membership of a worker in its job: the servers that it has joined, the current generation, and
// the servers that are silent.
//
// The worker joins server 0 first, whose welcome names the generation, and then the other servers.
// It joins all servers again if server 0 announces a newer generation or has forgotten the worker;
// server 0's new welcome says whether the worker's leases and requests still count (Welcome.since).
// Another server that has forgotten the worker is joined again on its own.
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
  // hello: the content of each HELLO; job: the value of Header.job in all messages.
  JoinedServers(int servers, const Experiment::Cluster& cluster, wire::Hello hello, uint64_t job,
                TimeUs now);

  enum class Heard {
    kOurs,      // the message counts
    kOther,     // the message is of another job or of an old generation
    kRejoined,  // the job has rolled back: greet server 0, then the other servers
  };
  Heard Hear(int server, const wire::Header& header, TimeUs now);

  struct Welcomed {
    bool joined = false;  // this server had not welcomed the worker before
    bool anew = false;    // leases and requests from before no longer count
  };
  Welcomed OnWelcome(int server, const wire::Welcome& welcome, TimeUs now);
  // The server has no record of the worker: it must be greeted again.
  void OnForgotten(int server);
  void OnConnected(int server, TimeUs now);

  // A HELLO without the worker's claims. It is due again after half a second unless answered.
  Message Greeting(int server, TimeUs now);
  // Greetings and heartbeats that are due, unless a server has been silent for too long.
  struct Due {
    std::vector<int> greetings;
    bool heartbeats = false;
    std::string lost;  // "server 1 at tcp://beta:7700 has not answered for 601 s"; "": none
  };
  Due Tick(TimeUs now);
  TimeUs NextDeadline() const;

  // The messages of a call that may be sent, stamped with protocol, job and generation. Until a
  // server has welcomed the worker, only HELLO is sent to it. A request that is dropped here counts
  // as sent in OpenRequests until the welcome, which sends it again (OpenRequests::Reopen).
  WorkerActions Stamp(WorkerActions actions) const;

  bool joined() const { return servers_[0].welcomed; }
  // Whether server 0 has welcomed the worker at some time; false: it has had no lease.
  bool ever_joined() const { return newest_generation_ != 0; }
  // The first server that has not welcomed the worker; -1 when all have.
  int Missing() const;
  // Servers other than 0 that have been silent for longer than cluster.suspect_after_s.
  std::vector<int> Unheard() const;
  // The version that the generation starts from.
  int64_t start_version() const { return start_version_; }
  // "server 0 at tcp://host:7700"
  std::string NameOf(int server) const;

 private:
  struct Server {
    bool welcomed = false;
    TimeUs heard = 0;
    bool unheard = false;  // silent for longer than cluster.suspect_after_s
    TimeUs next_hello = 0;
  };

  void Rejoin(uint32_t generation);

  Experiment::Cluster cluster_;
  wire::Hello hello_;
  uint64_t job_ = 0;

  std::vector<Server> servers_;
  uint32_t generation_ = 0;         // 0: not welcomed yet
  uint32_t newest_generation_ = 0;  // the newest one that server 0 has announced
  uint32_t since_ = 0;              // the generation in which our leases and requests began
  int64_t start_version_ = 0;
  TimeUs ticked_at_ = 0, held_up_at_ = 0;
  TimeUs next_heartbeat_ = 0;
};

}  // namespace kumo
