// Session: a worker's protocol with the servers, as a state machine without I/O. It joins the job,
// takes leases, and for each leased partition and round pulls the weights, has the block trained
// and pushes the contribution, until the coordinator ends the job.
//
// Computations are returned as actions, one at a time; the driver answers with OnTrained,
// OnEvaluated and so on. Every request to a server is repeated until answered, so every request may
// be answered twice. No method blocks, reads a clock or does I/O. One thread.
//
// Parts: JoinedServers has the membership, OpenRequests the unanswered requests, and Rounds the
// leases and the computation. The session connects them, greets, reports and leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/isa.h"
#include "common/base/process/stop_requests.h"
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
  std::optional<Isa> isa;  // of the arithmetic; none on a GPU
  ProcessIdentity process;
};

// Bytes that a worker has sent and received so far.
struct Traffic {
  uint64_t bytes_sent = 0, bytes_received = 0;
};

class Session {
 public:
  // The errors of JobShape::Make.
  static Result<Session> Make(const SessionSettings& settings, TimeUs now);

  // The transport name of this worker.
  const PeerName& peer_name() const { return peer_name_; }
  // Its address stays valid if the session is moved.
  const JobShape& shape() const { return *shape_; }

  WorkerActions OnMessage(int server, const Message& message, TimeUs now);
  // The connection to a server was made or made again: sends at once what may have been lost.
  WorkerActions OnConnected(int server, TimeUs now);
  // Sends what is due. traffic: the totals so far, for the reports.
  WorkerActions Tick(TimeUs now, const Traffic& traffic);
  TimeUs NextDeadline() const;

  // weights: by chunk, float32.
  WorkerActions OnInitialised(InitialWeights weights, TimeUs now);
  // Some chunks of the block's contribution (not chunk 0) are final while the rest is still
  // computed; all such calls come before OnTrained.
  WorkerActions OnCoded(std::vector<CodedChunk> chunks, TimeUs now);
  WorkerActions OnTrained(TrainedBlock block, TimeUs now);
  WorkerActions OnTrainedAhead(TrainedAhead ahead, TimeUs now);
  WorkerActions OnEvaluated(const Evaluation& evaluation, TimeUs now);
  // The block could not be computed (values that are not finite, a device failure): tells the
  // coordinator and leaves.
  WorkerActions OnFailed(const Status& status, TimeUs now);
  // Begins a graceful departure (SIGTERM): asks the coordinator to move the leases, continues until
  // the carried states are on the servers, then leaves. A second call, or checkpoint.grace_s, ends
  // the worker at once.
  WorkerActions Leave(TimeUs now);

  // The process that this worker waits for: "server 1 at tcp://beta:7700", or the coordinator's
  // reason why the job waits; "" if none is missing.
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
  void Finish(Status status, WorkerStepContext* context, bool handed_over = false,
              bool job_ended = false);

  PeerName peer_name_;
  std::unique_ptr<const JobShape> shape_;
  JoinedServers servers_;
  OpenRequests requests_;
  Rounds rounds_;

  wire::WorkerReport report_;  // as last sent
  double grace_s_ = 0;         // checkpoint.grace_s
  StopRequests stop_requests_{500 * kMillisecond};
  TimeUs leave_by_ = 0;  // deadline of the departure; 0: none was requested
  bool finished_ = false;
};

}  // namespace kumo
