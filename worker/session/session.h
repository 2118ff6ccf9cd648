// A worker's conversation with the servers, as a state machine: it joins, takes leases, and for
// each leased partition pulls the weights of a round, has its block trained, pushes the
// contribution, and again, until the coordinator says that the job is over.
//
// What it wants computed it returns as actions (one at a time); the driver answers with OnTrained
// and its kind. Everything that it asks of a server is repeated until answered, and every request
// may be answered twice. No method blocks, reads a clock or does I/O. One thread.
//
// Its parts: JoinedServers knows the servers that it has joined, OpenRequests what they were asked,
// and Rounds what is computed of the job. The session connects them; it greets, reports and leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "common/transport/message.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/session/joined_servers.h"
#include "worker/session/open_requests.h"
#include "worker/session/rounds.h"
#include "worker/session/step_context.h"

namespace kumo {

struct SessionSettings {
  JobIdentity identity;
  Experiment experiment;
  JobSpec spec;
  std::string name;  // "worker-0"
  std::string device;
  ProcessIdentity process;
};

// How much a worker has sent and received.
struct Traffic {
  uint64_t bytes_sent = 0, bytes_received = 0;
};

class Session {
 public:
  // The errors of JobShape::Make.
  static Result<Session> Make(const SessionSettings& settings, TimeUs now);

  // The name that this worker's messages travel under.
  const PeerName& peer_name() const { return peer_name_; }
  // Stays where it is for as long as the session, wherever that is moved.
  const JobShape& shape() const { return *shape_; }

  WorkerActions OnMessage(int server, const Message& message, TimeUs now);
  // The connection to a server was made (again): what it may have missed is asked at once.
  WorkerActions OnConnected(int server, TimeUs now);
  // traffic: so far, for the reports.
  WorkerActions Tick(TimeUs now, const Traffic& traffic);
  TimeUs NextDeadline() const;

  // weights: by chunk, float32.
  WorkerActions OnInitialised(InitialWeights weights, TimeUs now);
  // The driver hands on chunks of the block's contribution (not chunk 0) that are final while the
  // rest is still computed; all before OnTrained.
  WorkerActions OnCoded(std::vector<CodedChunk> chunks, TimeUs now);
  WorkerActions OnTrained(TrainedBlock block, TimeUs now);
  WorkerActions OnEvaluated(const checkpoint::SampleSums& metrics, TimeUs now);
  // The block could not be computed (numbers that are not finite, a device's failure): tells the
  // coordinator and leaves.
  WorkerActions OnFailed(const Status& status, TimeUs now);
  // A worker that gets SIGTERM asks the coordinator to move its leases to others, goes on until
  // what its partitions carry is on the servers, and leaves. When it is asked again, or after
  // checkpoint.grace_s, it leaves as it is.
  WorkerActions Leave(TimeUs now);

  // Whom it waits for before it can begin, or go on: "server 1 at tcp://beta:7700", or what the
  // coordinator says that the job waits for; "" when nobody is missing.
  std::string WaitsForProcesses() const;
  // "round 812: waits for the weights (server 1)"
  std::string StateInWords() const;

 private:
  Session(const SessionSettings& settings, std::unique_ptr<const JobShape> shape, TimeUs now);

  WorkerStepContext Begin(TimeUs now) { return {now, &requests_, {}}; }
  WorkerActions End(WorkerStepContext context) const {
    if (!finished_) context.SendRequests();
    return servers_.Stamp(std::move(context.actions));
  }

  void OnWelcome(int server, const wire::Welcome& welcome, WorkerStepContext* context);
  void OnRefused(int server, const wire::Header& header, WorkerStepContext* context);
  void OnReply(const wire::Header& header, WorkerStepContext* context);
  void OnGone(int server, const Message& message, WorkerStepContext* context);
  void Proceed(WorkerStepContext* context);
  void Greet(int server, WorkerStepContext* context);
  void SendHeartbeats(WorkerStepContext* context);
  void LeaveIfHandedOver(WorkerStepContext* context);
  void Finish(Status status, WorkerStepContext* context);

  PeerName peer_name_;
  std::unique_ptr<const JobShape> shape_;
  JoinedServers servers_;
  OpenRequests requests_;
  Rounds rounds_;

  wire::WorkerReport report_;  // as it was last sent
  double grace_s_ = 0;         // checkpoint.grace_s
  TimeUs leave_by_ = 0;        // was told to leave; 0: was not
  bool finished_ = false;
};

}  // namespace kumo
