// A server that follows server 0: it joins the generation that server 0 speaks of, reports to it,
// and leaves when it says so.
//
// What is lost on the way is sent again: the hello until it is answered, a report with each
// heartbeat, a file that is saved until server 0 has acknowledged it. Server 0 may be started
// again; it is waited for.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

  // Its number is 0 until server 0 has welcomed this server.
  const Generation& generation() const override { return generation_; }
  const SaveOrder& save_order() const override { return save_order_; }
  // The last that server 0 has told, a server 0 that was started again too.
  const LeaseTable& leases() const override { return leases_; }
  void OnSpec(const JobPlan&, const ShardMap&, const JobSpec&) override {}
  Result<bool> OnHello(const PeerName& from, const wire::Hello& hello,
                       StepContext* context) override;
  Status OnMessage(const PeerName& from, const wire::Header& header, StepContext* context) override;
  void RequestStop(const ReplicaStatus& standing, StepContext* context) override;
  TimeUs Tick(const ReplicaStatus& standing, StepContext* context) override;
  // Until it has been silent for twice cluster.suspect_after_s.
  bool Knows(const PeerName& peer, TimeUs seen, TimeUs now) const override;
  std::string WaitsForProcesses(TimeUs now) const override;

  // What only a coordinator is told or asked.
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
  void SendHello(const ReplicaStatus& standing, StepContext* context);
  void OnAskFolder(const wire::Header& header, StepContext* context);
  // The job is over: says goodbye to server 0, which waits for that, and leaves.
  void LeaveJob(Status status, StepContext* context) const;

  const FollowerSettings settings_;
  Generation generation_;
  uint32_t newest_ = 0;  // generation that server 0 has spoken of
  SaveOrder save_order_;
  LeaseTable leases_{0};
  uint64_t leases_hash_ = 0;
  Message hello_;  // the last that was sent
  TimeUs heard_;   // from server 0
  TimeUs next_hello_ = 0;
  TimeUs leave_by_ = 0;                                         // was told to leave; 0: was not
  std::map<std::pair<int64_t, int>, UnsentSave> unsent_saves_;  // by version and attempt
};

}  // namespace kumo
