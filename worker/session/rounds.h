// Rounds of a worker: which computation comes next for the partitions that it holds leases on.
//
// Algorithm. Let r be the smallest round among the leased partitions, and b the version that it
// starts from (JobPlan::BaseOf; r without a delay).
// 1. Each chunk that is not installed at version b is pulled. Servers park the pull until version b
//    exists. The pulls for round r + 1 are sent while round r is computed.
// 2. For each partition whose next round is r: if version r ends an epoch, the partition's slice of
//    the validation set is evaluated and the result acknowledged. Then its block is trained, and
//    the coded contribution is pushed chunk by chunk, some chunks perhaps while the block is still
//    computed.
// 3. If the plan says so, the partition trains the front of its slice of round r + 1 from there on
//    (sync.overlap). Meanwhile the pushes go on, and version r + 1 is pulled.
// 4. If the pull of chunk 0 said that round r ends with a checkpoint, the partition's carried state
//    is put on the servers and acknowledged before its next round.
//
// On arrival (JobPlan::on_arrival) each round pulls the weights anew, as they are. After a round
// that ends with a checkpoint, and with a new lease, it pulls a whole version: so no contribution
// is in weights that are saved, and comes again when the job resumes from them.
//
// Owned by a Session and called within its step contexts; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "proto/wire.pb.h"
#include "worker/session/actions.h"
#include "worker/session/computation.h"
#include "worker/session/downloads.h"
#include "worker/session/job_shape.h"
#include "worker/session/leases.h"
#include "worker/session/step_context.h"

namespace kumo {

// Progress of a worker and duration of its rounds, for its reports.
//
// A round's durations are known when the next version has arrived. Network: coding, pushes until
// the last acknowledgement, and the next version's chunks from the first to the last. Wait: from
// that acknowledgement to the first chunk of the next version. With a delay, what is hidden by the
// computation of other rounds is neither.
//
// Owned by a Rounds; one thread.
class Progress {
 public:
  void OnTraining(TimeUs now);
  void OnTrained(const TrainedBlock& block, TimeUs now);
  void OnTrainedAhead(const TrainedAhead& ahead, TimeUs now);
  // The last chunk of a block is pushed; `round` is the next one to compute for some partition.
  void OnPushed(int64_t round, TimeUs now);
  void OnPushAcknowledged(TimeUs now) { acknowledged_ = now; }
  // A chunk of the next version has arrived.
  void OnChunk(TimeUs now);
  // The version that `round` starts from is there as a whole.
  void OnVersion(int64_t round);
  // The generation or the membership has ended: durations might span a time in which the worker was
  // frozen.
  void ForgetTimes();

  void Report(wire::WorkerReport* report) const;

 private:
  // Times in the current round, as far as it has come: the push of its last block, the last
  // acknowledgement, the first and the last chunk of the next version.
  std::optional<TimeUs> pushed_, acknowledged_, first_chunk_, last_chunk_;
  TimeUs busy_until_ = 0;  // end of the computation since the push: what it hides is no wait
  double coding_ms_ = 0;   // of the last block
  int64_t begun_ = -1;     // the last round whose version is there

  // Values of the report.
  std::optional<double> compute_ms_, network_ms_, wait_ms_;
  int64_t round_ = 0;
  int64_t samples_ = 0;
  double samples_at_s_ = 0;
};

class Rounds {
 public:
  // shape must outlive this object.
  explicit Rounds(const JobShape* shape);

  // The generation or the membership has ended: drops all its state and the open requests. The next
  // generation starts at `version`.
  void Forget(int64_t version, WorkerStepContext* context);
  // A coordinator is joined again: its earlier orders no longer count.
  void ForgetOrders() { leases_.ForgetOrders(); }
  void OnOrders(const wire::Header& header, WorkerStepContext* context);
  // Handles the answer to a request: ACK, CHUNK, STATE, or GONE if the round has closed. Ignored if
  // the request is no longer open.
  void OnAnswer(int server, const Message& message, WorkerStepContext* context);

  // The driver has finished a computation.
  void OnInitialised(InitialWeights weights, WorkerStepContext* context);
  void OnTrained(TrainedBlock block, WorkerStepContext* context);
  void OnTrainedAhead(TrainedAhead ahead, WorkerStepContext* context);
  void OnEvaluated(const Evaluation& evaluation, WorkerStepContext* context);
  // The driver has finished some chunks of the block. leaving: the worker may have to give the
  // block up, so it does not begin to push it.
  void OnCoded(std::vector<CodedChunk> chunks, bool leaving, WorkerStepContext* context);
  // Starts the next computation that can be started.
  void Proceed(WorkerStepContext* context);

  // True if the worker was told to leave and holds no lease and no half-pushed block: once
  // everything is acknowledged, nothing is lost with it.
  bool HandedOver() const;
  // The reason why the job waits, from the coordinator, while nothing is leased here; otherwise "".
  std::string JobWaitsFor() const;
  // "round 812: waits for the weights (server 1)"
  std::string InWords(const OpenRequests& requests) const;
  // Adds the claims of this worker to a HELLO.
  void Claim(const OpenRequests& requests, wire::Hello* hello) const {
    leases_.Claim(requests, computation_.owed_state(), hello);
  }
  void Report(TimeUs now, wire::WorkerReport* report) const;

 private:
  void OnAck(const OpenRequest& request, const wire::Header& ack, WorkerStepContext* context);
  void OnGone(const OpenRequest& pull, int64_t oldest, WorkerStepContext* context);
  bool Reach(wire::Vector vector, int64_t version, WorkerStepContext* context);
  bool NeedsWhole(int64_t round) const;
  void AskAhead(WorkerStepContext* context);
  void ComputePartition(int partition, Lease* lease, WorkerStepContext* context);
  Lease* LeaseOfBlock();

  const JobShape* shape_;
  Leases leases_;
  WeightDownload weights_;
  StateDownload states_;
  Computation computation_;
  Progress progress_;
  bool initialised_ = false;  // the initial weights are pushed or not needed
  int64_t saved_ = -1;        // the version after the last round that ends with a checkpoint
};

}  // namespace kumo
