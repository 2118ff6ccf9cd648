// Role: the part of a server beside its shard. Server 0 coordinates the job (server/coordinator),
// every other server follows it (server/node/follower.h). The ServerNode that owns a role does not
// know which one it is.
//
// The node tells the role what happens, and asks it for the generation to be in and the version to
// save; the node follows both at the end of each call. One thread.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"
#include "server/protocol/lease_table.h"

namespace kumo {

// Shard status: versions that a server holds.
struct ShardStatus {
  bool ready = false;          // of its own shard: those that the generation starts from
  bool holds_replica = false;  // of all chunks of the server before it
};

class Role {
 public:
  virtual ~Role() = default;

  virtual const Generation& generation() const = 0;
  virtual const SaveOrder& save_order() const = 0;
  // The leases as far as this server knows them: only their holders' contributions count.
  virtual const LeaseTable& leases() const = 0;

  // The job's spec has become known.
  virtual void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) = 0;
  // A hello that CheckHello accepted. Returns true if its sender takes part from now on, false if
  // the sender was asked a question first. An error refuses the hello.
  virtual Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                               StepContext* context) = 0;
  // A member has sent a message of any type. Scenario: on a slow network a worker's heartbeats wait
  // behind the contributions that it pushes for longer than cluster.suspect_after_s.
  virtual void OnHeard(const PeerName& from, const wire::Header& header, TimeUs now) = 0;
  // The connection of a peer to this server has ended, or the peer is heard over a new one.
  virtual void OnPeerConnection(const PeerName& peer, bool connected, TimeUs now) = 0;
  // HEARTBEAT, BYE, EVALUATED, SAVED and INITIALISE of a member; STATUS of any peer; and to a
  // follower every message of server 0. The server's own HEARTBEAT (a report) and SAVED take the
  // same way. An error refuses the message.
  virtual Status OnMessage(const PeerName& from, const wire::Header& header,
                           StepContext* context) = 0;

  // Chunk 0, which is on this server, has reached `version`. metrics: of the round that made it.
  // Returns the directive for the last round that starts from it.
  virtual Directive OnVersion(int64_t version, const MetricSums& metrics, StepContext* context) = 0;
  // Chunk 0 is back on this server at `version`. directive: the former coordinator's,
  // likewise.
  virtual void TakeOver(int64_t version, const Directive& directive, StepContext* context) = 0;

  // The disk's answer to an action of a coordinator.
  virtual void OnDiskAnswer(const DiskAnswer& answer, StepContext* context) = 0;

  // SIGTERM or a first Ctrl-C.
  virtual void RequestStop(const ShardStatus& status, StepContext* context) = 0;
  // Returns when the next tick is due.
  virtual TimeUs Tick(const ShardStatus& status, StepContext* context) = 0;

  // Whether a member that was last heard at `seen` still takes part.
  virtual bool Knows(const PeerName& peer, TimeUs seen, TimeUs now) const = 0;
  // The processes that this one waits for before it can go on; "" if there are none.
  virtual std::string WaitsForProcesses(TimeUs now) const = 0;
  // Status of the job; empty on a follower.
  virtual wire::JobStatus Describe(TimeUs now) const = 0;
};

}  // namespace kumo
