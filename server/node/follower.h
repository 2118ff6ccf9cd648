// Follower: the role of a server other than server 0. It joins the generation of server 0, reports
// to server 0, follows its orders, and leaves when server 0 says so.
//
// Lost messages are repeated: the hello until it is answered, the report with each heartbeat, and
// SAVED until server 0 has acknowledged it. If server 0 is gone, the follower waits for a new one,
// for cluster.stall_timeout_s.
//
// States. number == 0: not welcomed; sends hellos. number > 0: a member of that generation. A
// message of a later generation, or GONE, leads back to the first state (Rejoin); whether the
// server keeps its shard is decided by the next WELCOME (Generation::since).
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/protocol/role.h"

namespace kumo {

struct FollowerSettings {
  int index = 1;
  JobIdentity identity;
  ProcessIdentity process;
  Experiment::Cluster cluster;
  double grace_s = 0;         // checkpoint.grace_s
  bool private_disk = false;  // checkpoint.disks
};

class Follower : public Role {
 public:
  Follower(FollowerSettings settings, TimeUs now);

  // The number is 0 until server 0 has welcomed this server.
  const Generation& generation() const override { return generation_; }
  const SaveOrder& save_order() const override { return save_order_; }
  // The last table that any server 0 has sent.
  const LeaseTable& leases() const override { return leases_; }
  void OnSpec(const JobPlan&, const ShardMap&, const JobSpec&) override {}
  Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                       StepContext* context) override;
  Status OnMessage(const PeerName& from, const wire::Header& header, StepContext* context) override;
  void RequestStop(const ShardStatus& status, StepContext* context) override;
  TimeUs Tick(const ShardStatus& status, StepContext* context) override;
  void OnPeerConnection(const PeerName&, bool, TimeUs) override {}
  // True until the peer has been silent for twice cluster.suspect_after_s.
  void OnHeard(const PeerName&, const wire::Header&, TimeUs) override {}
  bool Knows(const PeerName& peer, TimeUs seen, TimeUs now) const override;
  std::string WaitsForProcesses(TimeUs now) const override;

  // For a coordinator only.
  Directive OnVersion(int64_t, const MetricSums&, StepContext*) override { return {}; }
  void TakeOver(int64_t, const Directive&, StepContext*) override {}
  void OnDiskAnswer(const DiskAnswer&, StepContext*) override {}
  wire::JobStatus Describe(TimeUs) const override { return {}; }

 private:
  struct UnsentSave {
    Message message;
    TimeUs resend_at = 0;
  };

  void OnFromServer0(const wire::Header& header, StepContext* context);
  void OnWelcome(const wire::Welcome& welcome, StepContext* context);
  void OnHeartbeatReply(const wire::Header& header, StepContext* context);
  void OnOwn(const wire::Header& header, StepContext* context);
  void Rejoin(uint32_t generation, TimeUs now);
  void SendHello(const ShardStatus& status, StepContext* context);
  void OnAskFolder(const wire::Header& header, StepContext* context);
  // The job is over: says goodbye to server 0, which waits for it, and leaves.
  void LeaveJob(Status status, StepContext* context) const;

  const FollowerSettings settings_;
  Generation generation_;
  uint32_t newest_ = 0;  // the newest generation in a message of server 0
  SaveOrder save_order_;
  LeaseTable leases_{0};
  uint64_t leases_hash_ = 0;
  Message hello_;  // the last that was sent
  TimeUs heard_;   // last message of server 0
  TimeUs next_hello_ = 0;
  TimeUs leave_by_ = 0;                                         // limit after a stop; 0: none
  std::map<std::pair<int64_t, int>, UnsentSave> unsent_saves_;  // by version and attempt
};

}  // namespace kumo
