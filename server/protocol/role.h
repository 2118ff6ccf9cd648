// What a server does beside holding its shard: server 0 coordinates the job (coordinator/), every
// other one follows it (follower.h). The ServerNode that owns a role knows no difference between
// them.
//
// A role is told what happens, and is asked for the generation that the server is to be in and for
// what it is to save; the node goes along with both at the end of each call. One thread.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/job_plan.h"
#include "common/job/shard_map.h"
#include "common/transport/message.h"
#include "server/protocol/directive.h"
#include "server/protocol/disk_answers.h"
#include "server/protocol/generation.h"
#include "server/protocol/lease_table.h"
#include "server/protocol/step_context.h"

namespace kumo {

// What a server has, as the others are to know it.
struct ReplicaStatus {
  bool ready = false;    // what the generation starts from
  bool replica = false;  // of all chunks of the server before it
};

class Role {
 public:
  virtual ~Role() = default;

  virtual const Generation& generation() const = 0;
  virtual const SaveOrder& save_order() const = 0;
  // Whose contributions count, as far as this server knows.
  virtual const LeaseTable& leases() const = 0;

  // The job's spec has become known.
  virtual void OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) = 0;
  // A hello that CheckHello accepted: whether its sender takes part from now on; false where it was
  // asked something first. An error refuses it.
  virtual Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                               StepContext* context) = 0;
  // HEARTBEAT, BYE, EVALUATED, SAVED and INITIALISE of who takes part, this server itself included:
  // its own HEARTBEAT (a report) and SAVED go the same way. STATUS of anybody, and to a follower
  // whatever server 0 says. An error refuses the message.
  virtual Status OnMessage(const PeerName& from, const wire::Header& header,
                           StepContext* context) = 0;

  // Chunk 0, which is here, has reached `version`; what the round that starts from it is to do.
  virtual Directive OnVersion(int64_t version, const MetricSums& metrics, StepContext* context) = 0;
  // Chunk 0 is back here at `version`, with what the former server 0 said about the round that
  // starts from it.
  virtual void TakeOver(int64_t version, const Directive& said, StepContext* context) = 0;

  // To what a coordinator alone asks of the disk.
  virtual void OnDiskAnswer(const DiskAnswer& answer, StepContext* context) = 0;

  // SIGTERM or a first Ctrl-C.
  virtual void RequestStop(const ReplicaStatus& standing, StepContext* context) = 0;
  // When it is due again.
  virtual TimeUs Tick(const ReplicaStatus& standing, StepContext* context) = 0;

  // Whether a member that was last heard of at `seen` still takes part.
  virtual bool Knows(const PeerName& peer, TimeUs seen, TimeUs now) const = 0;
  // Whom this process waits for before it can go on; "" for nobody.
  virtual std::string WaitsForProcesses(TimeUs now) const = 0;
  // Of the job, as far as this server is to know.
  virtual wire::JobStatus Describe(TimeUs now) const = 0;
};

}  // namespace kumo
