#include "worker/session/computation.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "common/checkpoint/origin.h"

namespace kumo {

void Computation::Begin(Kind kind, int partition, int64_t round, TimeUs now) {
  kind_ = kind;
  partition_ = partition;
  round_ = round;
  begun_ = now;
}

std::optional<TimeUs> Computation::begun() const {
  if (kind_ != Kind::kTraining && kind_ != Kind::kEvaluating) return std::nullopt;
  return begun_;
}

void Computation::Initialise(WorkerStepContext* context) {
  Begin(Kind::kInitialising, 0, 0, context->now);
  context->Do(InitialiseAction{});
}

void Computation::Train(int partition, int64_t round, std::vector<int64_t> applied, bool save,
                        WorkerStepContext* context) {
  Begin(Kind::kTraining, partition, round, context->now);
  save_ = save;
  applied_ = std::move(applied);
  pushed_.assign(shape_->map.chunks().size(), false);
  context->Do(TrainAction{partition, shape_->plan.Round(round),
                          save && !shape_->TrainsAhead(round, partition)});
}

void Computation::TrainAhead(WorkerStepContext* context) {
  if (!shape_->TrainsAhead(round_, partition_)) return;
  Begin(Kind::kTrainingAhead, partition_, round_, context->now);
  context->Do(TrainAheadAction{partition_, shape_->plan.Round(round_ + 1), save_});
}

std::optional<std::pair<int, int64_t>> Computation::owed_state() const {
  if (kind_ != Kind::kTrainingAhead || partition_ < 0 || !save_) return std::nullopt;
  return std::pair(partition_, round_ + 1);
}

void Computation::Evaluate(int partition, int64_t version, WorkerStepContext* context) {
  Begin(Kind::kEvaluating, partition, version, context->now);
  const bool apart = shape_->EvaluatesApart(version);
  context->Do(EvaluateAction{partition, version, apart ? wire::WEIGHTS : wire::START});
}

bool Computation::HalfPushed() const {
  return kind_ == Kind::kTraining && partition_ >= 0 &&
         std::find(pushed_.begin(), pushed_.end(), true) != pushed_.end();
}

void Computation::SendInitial(InitialWeights weights, WorkerStepContext* context) {
  for (const Chunk& chunk : shape_->map.chunks()) {
    wire::Header header;
    header.set_type(wire::INITIALISE);
    header.set_chunk(chunk.index);
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    if (chunk.index == 0 && weights.origin) *header.mutable_origin() = Excerpt(*weights.origin);
    context->Ask(chunk.server, std::move(header), std::move(weights.chunks[chunk.index]));
  }
}

void Computation::Push(CodedChunk coded, const MetricSums* metrics, WorkerStepContext* context) {
  const Chunk& chunk = shape_->map.chunks()[coded.chunk];
  const RoundPlan round = shape_->plan.Round(round_);
  const Codec& codec = shape_->policy.PushCodec(round, chunk);
  wire::Header header;
  header.set_type(wire::PUSH);
  header.set_round(round_);
  header.set_partition(partition_);
  header.set_chunk(chunk.index);
  header.set_samples(shape_->plan.PartitionSamples(round, partition_).size());
  if (coded.weight && shape_->policy.MayWeigh(round, chunk.segment)) {
    header.set_weight(*coded.weight);
  }
  header.set_save(save_);
  header.set_applied(applied_[chunk.index]);
  header.set_codec(static_cast<uint32_t>(codec.id()));
  if (metrics != nullptr) WriteSums(*metrics, header.mutable_metrics());
  pushed_[chunk.index] = true;
  context->Ask(chunk.server, std::move(header), std::move(coded.payload));
}

void Computation::PushFinished(std::vector<CodedChunk> chunks, WorkerStepContext* context) {
  for (CodedChunk& coded : chunks) {
    CHECK_GT(coded.chunk, 0) << "the block's metrics go with chunk 0";
    Push(std::move(coded), nullptr, context);
  }
}

void Computation::PushRest(TrainedBlock* block, WorkerStepContext* context) {
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (pushed_[chunk.index]) continue;
    Push({chunk.index, std::move(block->contributions[chunk.index]), block->weight},
         chunk.index == 0 ? &block->metrics : nullptr, context);
  }
}

void Computation::PutCarried(std::vector<CarriedArray> carried, WorkerStepContext* context) {
  for (CarriedArray& array : carried) {
    wire::Header header;
    header.set_type(wire::PUT_STATE);
    header.set_round(round_ + 1);
    header.set_partition(partition_);
    header.set_chunk(array.chunk);
    header.set_carried_array(array.index);
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    context->Ask(ServerOf(array.chunk), std::move(header), std::move(array.payload));
  }
}

void Computation::SendEvaluation(const Evaluation& evaluation, WorkerStepContext* context) {
  wire::Header header;
  header.set_type(wire::EVALUATED);
  header.set_round(round_);
  header.set_partition(partition_);
  WriteEvaluation(evaluation.metrics, header.mutable_metrics());
  header.set_picture(evaluation.picture);
  context->Ask(0, std::move(header));
}

}  // namespace kumo
