#include "worker/trainer.h"

#include <algorithm>
#include <cstring>

#include <glog/logging.h>

#include "data/open_datasets.h"
#include "models/network.h"
#include "worker/stored_weights.h"

namespace kumo {
namespace {

Payload Pack(std::span<const float> numbers) {
  auto copy = std::make_shared<Buffer<float>>(numbers.size());
  std::memcpy(copy->data(), numbers.data(), numbers.size_bytes());
  return {copy, std::as_bytes(std::as_const(*copy).span())};
}

std::span<float> Part(Buffer<float>& vector, Range range) {
  return vector.span().subspan(range.begin, range.size());
}

}  // namespace

Trainer::Trainer(const Experiment& experiment, const Clock* clock)
    : experiment_(experiment), clock_(clock) {}

Result<std::unique_ptr<Trainer>> Trainer::Make(const Experiment& experiment, const Clock* clock) {
  std::unique_ptr<Trainer> trainer(new Trainer(experiment, clock));
  KUMO_RETURN_IF_ERROR(trainer->OpenNetworkAndData());
  return trainer;
}

Status Trainer::OpenNetworkAndData() {
  KUMO_ASSIGN_OR_RETURN(const model::Network network, LoadNetwork(experiment_.network.file));
  NetOptions options;
  options.max_batch = std::max(experiment_.sync.minibatch, experiment_.evaluation.minibatch);
  options.threads = experiment_.network.threads;
  KUMO_ASSIGN_OR_RETURN(net_, Net::Make(network, options));
  KUMO_ASSIGN_OR_RETURN(datasets_, OpenDatasets(experiment_.data));

  const Shape input = net_->input();
  const SampleShape sample = datasets_.train->shape();
  if (input.channels != sample.channels || input.height != sample.height ||
      input.width != sample.width) {
    return FailedPrecondition(experiment_.network.file + " takes images of " +
                              std::to_string(input.channels) + "x" + std::to_string(input.height) +
                              "x" + std::to_string(input.width) + ", " + datasets_.train->name() +
                              " has " + std::to_string(sample.channels) + "x" +
                              std::to_string(sample.height) + "x" + std::to_string(sample.width));
  }
  if (net_->classes() < datasets_.train->classes()) {
    return FailedPrecondition(experiment_.network.file + " tells " +
                              std::to_string(net_->classes()) + " classes apart, data.classes is " +
                              std::to_string(datasets_.train->classes()));
  }
  KUMO_ASSIGN_OR_RETURN(spec_.layout, ParameterLayout::Make(net_->tensors()));
  spec_.train_samples = datasets_.train->size();
  spec_.validation_samples = datasets_.validation->size();
  KUMO_ASSIGN_OR_RETURN(optimiser_, MakeOptimiser(experiment_.optimiser));
  const bool keeps =
      experiment_.sync.mode == SyncMode::kBlock && !experiment_.block.reset_local_state;
  spec_.optimiser_slots = keeps ? optimiser_->slots() : 0;
  KUMO_ASSIGN_OR_RETURN(
      const Schedule schedule,
      Schedule::Make(experiment_.schedule, spec_.train_samples, experiment_.job.epochs));
  schedule_ = schedule;

  const float scale = static_cast<float>(experiment_.data.scale);
  train_stream_ = std::make_unique<BatchStream>(
      datasets_.train.get(), BatchStreamOptions{.order = BatchOrder::kShuffled,
                                                .seed = experiment_.job.seed,
                                                .scale = scale,
                                                .minibatch = experiment_.sync.minibatch,
                                                .prefetch = experiment_.data.prefetch});
  validation_stream_ = std::make_unique<BatchStream>(
      datasets_.validation.get(), BatchStreamOptions{.order = BatchOrder::kSequential,
                                                     .scale = scale,
                                                     .minibatch = experiment_.evaluation.minibatch,
                                                     .prefetch = experiment_.data.prefetch});
  weights_ = Buffer<float>(spec_.layout.size());
  gradients_ = Buffer<float>(spec_.layout.size());
  return net_->Bind(spec_.layout, weights_.span(), gradients_.span());
}

Status Trainer::Attach(const Session* session) {
  session_ = session;
  base_ = Buffer<float>(spec_.layout.size());
  if (experiment_.sync.mode == SyncMode::kBlock && experiment_.block.reset_local_state) {
    for (int i = 0; i < optimiser_->slots(); ++i)
      optimiser_slots_.emplace_back(spec_.layout.size());
  }
  int64_t longest = 0;
  for (const Chunk& chunk : session_->map().chunks()) {
    longest = std::max(longest, chunk.range.size());
  }
  difference_ = Buffer<float>(longest);
  return OkStatus();
}

Result<std::vector<Payload>> Trainer::InitialWeights() const {
  Buffer<float> weights(spec_.layout.size());
  if (const std::string& stored = experiment_.network.initial_weights; !stored.empty()) {
    Result<Buffer<float>> loaded = LoadStoredWeights(stored, spec_.layout);
    // Another worker would find the same: the job is to end, naming it.
    if (!loaded.ok()) return FailedPrecondition(loaded.status().message());
    weights = std::move(loaded).value();
  } else {
    KUMO_RETURN_IF_ERROR(net_->InitialWeights(experiment_.job.seed, spec_.layout, weights.span()));
  }
  std::vector<Payload> chunks;
  for (const Chunk& chunk : session_->map().chunks()) {
    chunks.push_back(Pack(Part(weights, chunk.range)));
  }
  return chunks;
}

void Trainer::Install(const InstallAction& install) {
  Buffer<float>& vector = install.vector == wire::START ? base_ : evaluated_;
  if (vector.empty()) vector = Buffer<float>(spec_.layout.size());
  const Range range = session_->map().chunks()[install.chunk].range;
  install.codec->Decode(install.payload.bytes, range.size(), 0, Part(vector, range));
}

Trainer::Carried Trainer::MakeCarried() const {
  Carried carried;
  if (CarriesResidual(experiment_)) carried.residual = Buffer<float>(spec_.layout.size());
  for (int i = 0; i < spec_.optimiser_slots; ++i) {
    carried.optimiser.emplace_back(spec_.layout.size());
  }
  return carried;
}

void Trainer::Adopt(const AdoptAction& adopt) {
  Carried& carried = carried_[adopt.partition] = MakeCarried();
  const int first_optimiser = carried.residual.empty() ? 0 : 1;
  for (const AdoptAction::Array& array : adopt.arrays) {
    Buffer<float>& vector = array.slot < first_optimiser
                                ? carried.residual
                                : carried.optimiser[array.slot - first_optimiser];
    const std::span<float> part = Part(vector, session_->map().chunks()[array.chunk].range);
    std::memcpy(part.data(), array.payload.bytes.data(), part.size_bytes());
  }
}

void Trainer::Drop(int partition) { carried_.erase(partition); }

void Trainer::StartRange(const TrainAction& train) {
  const std::pair<int64_t, int> wanted{train.round.round, train.partition};
  if (started_ == wanted) return;
  if (started_) train_stream_->Cancel();
  train_stream_->Start(train.round.epoch,
                       session_->plan().PartitionSamples(train.round, train.partition));
}

// Most likely the next leased partition follows, or the first one in the next round.
void Trainer::StartNextRange(const TrainAction& train) {
  started_.reset();
  auto next = carried_.upper_bound(train.partition);
  RoundPlan round = train.round;
  if (next == carried_.end()) {
    if (round.round + 1 >= session_->plan().rounds()) return;
    round = session_->plan().Round(round.round + 1);
    next = carried_.begin();
  }
  started_ = {round.round, next->first};
  train_stream_->Start(round.epoch, session_->plan().PartitionSamples(round, next->first));
}

Result<TrainedBlock> Trainer::Train(const TrainAction& train, BlockTimes* times) {
  Carried& carried = carried_.at(train.partition);
  const TimeUs begin = clock_->NowUs();
  TrainedBlock block;
  StartRange(train);
  StartNextRange(train);
  std::memcpy(weights_.data(), base_.data(), base_.size() * sizeof(float));
  if (train.round.mode == SyncMode::kBlock) {
    for (Buffer<float>& slot : optimiser_slots_) slot.Zero();
  }
  KUMO_ASSIGN_OR_RETURN(block.metrics, Minibatches(train, &carried));
  const TimeUs trained = clock_->NowUs();
  for (const Chunk& chunk : session_->map().chunks()) {
    if (block.metrics.samples() == 0) {
      block.contributions.push_back({});
      continue;
    }
    KUMO_ASSIGN_OR_RETURN(Payload payload, Encode(train, chunk, &carried));
    block.contributions.push_back(std::move(payload));
  }
  if (train.save_state) AppendCarried(carried, &block);
  times->compute_ms = static_cast<double>(trained - begin) * 1e-3;
  times->coding_ms = static_cast<double>(clock_->NowUs() - trained) * 1e-3;
  return block;
}

Result<wire::Metrics> Trainer::Minibatches(const TrainAction& train, Carried* carried) {
  wire::Metrics metrics;
  for (int i = 0;; ++i) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, train_stream_->Next());
    if (minibatch.size == 0) return metrics;
    const Batch batch{static_cast<int>(minibatch.size), minibatch.inputs, minibatch.labels};
    const StepStreams streams{experiment_.job.seed, static_cast<uint64_t>(train.partition),
                              static_cast<uint64_t>(train.round.round), static_cast<uint64_t>(i)};
    KUMO_ASSIGN_OR_RETURN(const StepResult step, net_->TrainStep(batch, streams));
    metrics.set_samples(metrics.samples() + minibatch.size);
    metrics.set_loss_sum(metrics.loss_sum() + step.loss_sum);
    metrics.set_correct(metrics.correct() + step.correct);
    if (train.round.mode == SyncMode::kBlock) OptimiserStep(train, i, carried);
  }
}

void Trainer::OptimiserStep(const TrainAction& train, int minibatch, Carried* carried) {
  const auto& sync = experiment_.sync;
  const RoundPlan& round = train.round;
  std::vector<Buffer<float>>& slots =
      carried->optimiser.empty() ? optimiser_slots_ : carried->optimiser;
  StepInfo info;
  // All partitions advance together: the position counts what they have seen so far.
  info.learning_rate = schedule_->RateAt(
      std::min(round.first_sample + int64_t{minibatch} * sync.minibatch * sync.partitions,
               round.first_sample + round.samples.size()));
  info.step = minibatch + 1;
  if (!carried->optimiser.empty()) info.step += (round.step - 1) * sync.block;
  for (Segment segment : {Segment::kDecayed, Segment::kUndecayed}) {
    const Range range = spec_.layout.segment(segment);
    info.weight_decay = segment == Segment::kDecayed ? experiment_.optimiser.weight_decay : 0.0f;
    float* slot_parts[Optimiser::kMaxSlots] = {};
    for (size_t i = 0; i < slots.size(); ++i) slot_parts[i] = slots[i].data() + range.begin;
    const std::span<float> weights = Part(weights_, range);
    optimiser_->Step(info, 1.0f, Part(gradients_, range), weights, weights, slot_parts);
  }
}

// The mean gradient where the round is one of gradients, else base - weights. Statistics are
// averaged in either mode.
Result<Payload> Trainer::Encode(const TrainAction& train, const Chunk& chunk, Carried* carried) {
  const size_t n = chunk.range.size();
  std::span<const float> numbers = Part(gradients_, chunk.range);
  if (train.round.mode == SyncMode::kBlock || chunk.segment == Segment::kStatistics) {
    const float* base = base_.data() + chunk.range.begin;
    const float* weights = weights_.data() + chunk.range.begin;
    for (size_t i = 0; i < n; ++i) difference_[i] = base[i] - weights[i];
    numbers = difference_.span().subspan(0, n);
  }
  const Codec& codec = session_->PushCodec(train.round, chunk.segment);
  std::span<float> residual;
  if (codec.lossy() && !carried->residual.empty()) residual = Part(carried->residual, chunk.range);
  auto coded = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(n));
  const int64_t bad = codec.Encode(numbers, residual, coded->span());
  if (bad >= 0) {
    return FailedPrecondition(
        "round " + std::to_string(train.round.round) + ", partition " +
        std::to_string(train.partition) + ": tensor " + TensorAt(chunk.range.begin + bad) +
        " has become infinite or not a number; a lower schedule.learning_rate usually helps");
  }
  return Payload{coded, std::as_const(*coded).span()};
}

std::string Trainer::TensorAt(int64_t position) const {
  const int tensor = spec_.layout.TensorAt(position);
  return tensor < 0 ? "?" : spec_.layout.tensors()[tensor].name;
}

void Trainer::AppendCarried(const Carried& carried, TrainedBlock* block) const {
  for (const Chunk& chunk : session_->map().chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    int slot = 0;
    const auto add = [&](const Buffer<float>& vector) {
      block->carried.push_back(
          {chunk.index, slot++,
           Pack(vector.span().subspan(chunk.range.begin, chunk.range.size()))});
    };
    if (!carried.residual.empty()) add(carried.residual);
    for (const Buffer<float>& vector : carried.optimiser) add(vector);
  }
}

Result<wire::Metrics> Trainer::Evaluate(const EvaluateAction& evaluate) {
  Buffer<float>& vector = evaluate.vector == wire::START ? base_ : evaluated_;
  return EvaluateRange(
      session_->plan().EvaluationSamples(spec_.validation_samples, evaluate.partition),
      vector.span());
}

Result<wire::Metrics> Trainer::EvaluateAll(std::span<const float> weights) {
  std::copy(weights.begin(), weights.end(), weights_.data());
  return EvaluateRange({0, spec_.validation_samples}, weights_.span());
}

Result<wire::Metrics> Trainer::EvaluateRange(Range samples, std::span<float> weights) {
  wire::Metrics metrics;
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights, gradients_.span()));
  validation_stream_->Start(0, samples);
  while (true) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, validation_stream_->Next());
    if (minibatch.size == 0) break;
    const Batch batch{static_cast<int>(minibatch.size), minibatch.inputs, minibatch.labels};
    KUMO_ASSIGN_OR_RETURN(const StepResult step, net_->Evaluate(batch));
    metrics.set_samples(metrics.samples() + minibatch.size);
    metrics.set_loss_sum(metrics.loss_sum() + step.loss_sum);
    metrics.set_correct(metrics.correct() + step.correct);
  }
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights_.span(), gradients_.span()));
  return metrics;
}

}  // namespace kumo
