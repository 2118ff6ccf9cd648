// Current computation of a worker, one at a time: the initial weights, a partition's block or its
// slice of an evaluation; and the messages that carry its result to the servers. A block whose
// partition trains ahead is followed by that computation at once, while its chunks are sent.
//
// Invariant: once one chunk of a block is pushed, the other chunks of that block are pushed too,
// even if the lease has moved meanwhile. A pushed chunk may have closed its round on its server;
// without the other chunks the servers would stay at different versions.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "worker/session/job_shape.h"
#include "worker/session/step_context.h"

namespace kumo {

class Computation {
 public:
  enum class Kind { kNone, kInitialising, kTraining, kTrainingAhead, kEvaluating };

  // shape must outlive this object.
  explicit Computation(const JobShape* shape) : shape_(shape) {}

  void Initialise(WorkerStepContext* context);
  // applied: by chunk, as said of the weights that the block starts from (Header.applied). save:
  // the round ends with a checkpoint, so the carried state is wanted too.
  void Train(int partition, int64_t round, std::vector<int64_t> applied, bool save,
             WorkerStepContext* context);
  // The block has ended: trains the front of the partition's next slice, if the plan says so.
  void TrainAhead(WorkerStepContext* context);
  void Evaluate(int partition, int64_t version, WorkerStepContext* context);
  // The driver has finished the computation.
  void End() { kind_ = Kind::kNone; }
  // Marks the computation as obsolete: its result will be thrown away.
  void Disown() { partition_ = -1; }

  // kNone while nothing is computed; partition() and round() then belong to the last
  // computation.
  Kind kind() const { return kind_; }
  int partition() const { return partition_; }  // -1: the result will be thrown away
  int64_t round() const { return round_; }      // of an evaluation: the version
  // Begin of the block or the evaluation that is computed; nullopt if there is none.
  std::optional<TimeUs> begun() const;
  // The partition and version whose carried state the servers get when the computation ends;
  // nullopt if they get none.
  std::optional<std::pair<int, int64_t>> owed_state() const;
  // True if some chunks of the current block are pushed.
  bool HalfPushed() const;

  void SendInitial(InitialWeights weights, WorkerStepContext* context);
  // Pushes finished chunks of the current block. Requires that chunk 0 is not among them, because
  // its message carries the block's metrics.
  void PushFinished(std::vector<CodedChunk> chunks, WorkerStepContext* context);
  // Pushes the chunks of the block that are not pushed yet.
  void PushRest(TrainedBlock* block, WorkerStepContext* context);
  // Stores the partition's carried state after the block on the servers.
  void PutCarried(std::vector<CarriedArray> carried, WorkerStepContext* context);
  void SendEvaluation(const Evaluation& evaluation, WorkerStepContext* context);

 private:
  void Begin(Kind kind, int partition, int64_t round, TimeUs now);
  void Push(CodedChunk coded, const MetricSums* metrics, WorkerStepContext* context);
  int ServerOf(int chunk) const { return shape_->map.chunks()[chunk].server; }

  const JobShape* shape_;
  Kind kind_ = Kind::kNone;
  int partition_ = 0;
  int64_t round_ = 0;
  TimeUs begun_ = 0;
  bool save_ = false;         // of the last block
  std::vector<bool> pushed_;  // by chunk, of the block
  std::vector<int64_t> applied_;
};

}  // namespace kumo
