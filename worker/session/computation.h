// What a worker computes at the moment, one thing at a time: the initial weights, a partition's
// block or its slice of an evaluation; and what of its result goes to the servers.
//
// A block's chunks may be pushed while the rest is still computed. Once some are, the others must
// follow, whoever has the lease by then: they may have closed their round, and servers would be
// left at different versions.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/transport/message.h"
#include "worker/session/job_shape.h"
#include "worker/session/step_context.h"

namespace kumo {

class Computation {
 public:
  enum class Kind { kNone, kInitialising, kTraining, kEvaluating };

  // shape is borrowed for life.
  explicit Computation(const JobShape* shape) : shape_(shape) {}

  void Initialise(WorkerStepContext* context);
  // save: the round ends with a checkpoint.
  void Train(int partition, int64_t round, bool save, WorkerStepContext* context);
  void Evaluate(int partition, int64_t version, WorkerStepContext* context);
  // The driver is done.
  void End() { kind_ = Kind::kNone; }
  // Its result is of no use when it is done.
  void Disown() { partition_ = -1; }

  // kNone where nothing is computed; partition and round are then those of what ended last.
  Kind kind() const { return kind_; }
  int partition() const { return partition_; }  // -1: the result is to be thrown away
  int64_t round() const { return round_; }      // or the version that is evaluated
  // Some chunks of the block under way are pushed.
  bool HalfPushed() const;

  void SendInitial(InitialWeights weights, WorkerStepContext* context);
  // Chunks of the block under way. Requires that chunk 0, with which the block's metrics go, is not
  // among them.
  void PushEarly(std::vector<CodedChunk> chunks, WorkerStepContext* context);
  // What is not pushed yet of the block.
  void PushRest(TrainedBlock* block, WorkerStepContext* context);
  // What the partition carries after the block is put on the servers.
  void PutCarried(std::vector<TrainedBlock::Array> carried, WorkerStepContext* context);
  void SendEvaluation(const checkpoint::SampleSums& metrics, WorkerStepContext* context);

 private:
  void Begin(Kind kind, int partition, int64_t round);
  void Push(int chunk, Payload payload, const checkpoint::SampleSums* metrics,
            WorkerStepContext* context);
  int ServerOf(int chunk) const { return shape_->map.chunks()[chunk].server; }

  const JobShape* shape_;
  Kind kind_ = Kind::kNone;
  int partition_ = 0;
  int64_t round_ = 0;
  bool save_ = false;
  std::vector<bool> pushed_;  // by chunk, of the block
};

}  // namespace kumo
