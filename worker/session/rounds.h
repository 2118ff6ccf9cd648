// A worker's part in the rounds of a job: what it computes of them, for the partitions that it
// holds leases on.
//
// A round in words. Let r be the smallest round among the leased partitions. (1) Every chunk that
// is not installed at version r is pulled; servers park the pull until the version exists. (2) For
// each partition whose round is r: where version r ends an epoch, its slice of the validation set
// is evaluated and the result acknowledged; then its block is trained and the coded contribution
// pushed chunk by chunk, some perhaps while the block is still computed. (3) Where the pull of
// chunk 0 said that this round ends with a checkpoint, what the partition carries is put on the
// servers too, and acknowledged, before its next round.
//
// Owned by a Session, whose turns it takes part in; one thread.
#pragma once

#include <string>
#include <vector>

#include "common/transport/message.h"
#include "worker/session/arriving_states.h"
#include "worker/session/computation.h"
#include "worker/session/job_shape.h"
#include "worker/session/leases.h"
#include "worker/session/progress.h"
#include "worker/session/step_context.h"
#include "worker/session/weights.h"

namespace kumo {

class Rounds {
 public:
  // shape is borrowed for life.
  explicit Rounds(const JobShape* shape);

  // A generation, or a membership, is over: drops everything that belongs to it, and the open
  // requests. The next one starts at `version`.
  void Forget(int64_t version, WorkerStepContext* context);
  // A coordinator is joined again: what it ordered before counts no more.
  void ForgetOrders() { leases_.ForgetOrders(); }
  void OnOrders(const wire::Header& header, WorkerStepContext* context);
  // The answer to a request: ACK, CHUNK, STATE, or GONE where the round has closed. Ignored where
  // the request is not open any more.
  void OnAnswer(int server, const Message& message, WorkerStepContext* context);

  // The driver is done with what it was asked for.
  void OnInitialised(InitialWeights weights, WorkerStepContext* context);
  void OnTrained(TrainedBlock block, WorkerStepContext* context);
  void OnEvaluated(const checkpoint::SampleSums& metrics, WorkerStepContext* context);
  // Or with some chunks of the block. leaving: the worker may have to give the block up, and does
  // not begin to push it.
  void OnCoded(std::vector<CodedChunk> chunks, bool leaving, WorkerStepContext* context);
  // Starts whatever can be started next.
  void Proceed(WorkerStepContext* context);

  // The worker was told to leave, and nothing is lost with it when all is acknowledged: it has no
  // lease, and no block that is half pushed.
  bool HandedOver() const;
  // What the job waits for while nothing is leased here, as the coordinator says; else "".
  std::string JobWaitsFor() const;
  // "round 812: waits for the weights (server 1)"
  std::string InWords(const OpenRequests& requests) const;
  // What a hello says of what is here.
  void Claim(const OpenRequests& requests, wire::Hello* hello) const {
    leases_.Claim(requests, hello);
  }
  void Report(wire::WorkerReport* report) const { progress_.Report(report); }

 private:
  void OnAck(const OpenRequest& request, const wire::Header& ack, WorkerStepContext* context);
  void OnGone(const OpenRequest& pull, int64_t oldest, WorkerStepContext* context);
  bool Reach(wire::Vector vector, int64_t version, WorkerStepContext* context);
  void ComputePartition(int partition, Lease* lease, WorkerStepContext* context);
  Lease* LeaseOfBlock();

  const JobShape* shape_;
  Leases leases_;
  Weights weights_;
  ArrivingStates states_;
  Computation computation_;
  Progress progress_;
  bool initialised_ = false;  // the initial weights were pushed, or are not wanted
};

}  // namespace kumo
