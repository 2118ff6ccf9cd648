#include "worker/trainer.h"

#include <algorithm>
#include <cstring>

#include <glog/logging.h>

#include "data/content_hash.h"
#include "data/open_datasets.h"
#include "models/backend/devices.h"
#include "models/backend/memory_ledger.h"
#include "models/network.h"
#include "worker/transferred_weights.h"

namespace kumo {
namespace {

Payload Pack(std::span<const float> numbers) {
  auto copy = std::make_shared<Buffer<float>>(numbers.size());
  std::memcpy(copy->data(), numbers.data(), numbers.size_bytes());
  return {copy, std::as_bytes(std::as_const(*copy).span())};
}

size_t BytesOf(Range range) { return static_cast<size_t>(range.size()) * sizeof(float); }

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
  DeviceOptions device;
  device.device = experiment_.network.device;
  device.threads = experiment_.network.threads;
  device.precision = experiment_.network.precision;
  device.tf32 = experiment_.network.tf32;
  device.deterministic = experiment_.network.deterministic;
  KUMO_ASSIGN_OR_RETURN(backend_, MakeBackend(device));
  KUMO_ASSIGN_OR_RETURN(datasets_, OpenDatasets(experiment_.data));
  KUMO_ASSIGN_OR_RETURN(
      const MinibatchRooms rooms,
      MinibatchRooms::Of(experiment_, datasets_.train->size(), datasets_.validation->size()));
  KUMO_ASSIGN_OR_RETURN(net_, Net::Make(network, rooms.largest(), backend_.get()));
  KUMO_RETURN_IF_ERROR(CheckDataFits());
  KUMO_ASSIGN_OR_RETURN(spec_.layout, ParameterLayout::Make(net_->tensors()));
  spec_.train_samples = datasets_.train->size();
  spec_.validation_samples = datasets_.validation->size();
  KUMO_ASSIGN_OR_RETURN(spec_.train.hash, ContentHash(*datasets_.train));
  KUMO_ASSIGN_OR_RETURN(spec_.validation.hash, ContentHash(*datasets_.validation));
  spec_.train.name = datasets_.train->name();
  spec_.validation.name = datasets_.validation->name();
  KUMO_ASSIGN_OR_RETURN(optimiser_, MakeOptimiser(experiment_.optimiser));
  spec_.optimiser_slots = SlotsThatPartitionsCarry(experiment_, *optimiser_);
  KUMO_ASSIGN_OR_RETURN(
      const Schedule schedule,
      Schedule::Make(experiment_.schedule, spec_.train_samples, experiment_.job.epochs));
  schedule_ = schedule;

  weights_ = MakeVectors(1, "the weights");
  gradients_ = MakeVectors(1, "the gradients");
  formula_ = backend_->KeepFormula(net_->input(), Pixels());
  train_ = MakeSource(*datasets_.train, BatchOrder::kShuffled, rooms.train,
                      {.pad = experiment_.data.crop_pad, .flip = experiment_.data.flip});
  validation_ = MakeSource(*datasets_.validation, BatchOrder::kSequential, rooms.validation, {});
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  return net_->Bind(spec_.layout, weights_.data(), gradients_.data());
}

Status Trainer::CheckDataFits() const {
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
  return OkStatus();
}

PixelFormula Trainer::Pixels() const {
  return {.scale = static_cast<float>(experiment_.data.scale),
          .pad_value = static_cast<uint8_t>(experiment_.data.pad_value),
          .mean = datasets_.mean};
}

Trainer::Source Trainer::MakeSource(const Dataset& dataset, BatchOrder order,
                                    const MinibatchRoom& room, const Augmentation& augmentation) {
  Source source;
  if (const std::optional<RawSamples> raw = dataset.raw(); raw && formula_) {
    // Base, evaluated weights, the optimiser's state; what all partitions may carry.
    const int64_t vectors =
        2 + optimiser_->slots() + int64_t{experiment_.sync.partitions} * CarriedVectors();
    const int64_t reserve = vectors * spec_.layout.size() * static_cast<int64_t>(sizeof(float));
    source.kept = backend_->KeepSamples(raw->pixels, raw->labels, reserve);
  }
  BatchContent content = BatchContent::kInputs;
  if (formula_) content = source.kept ? BatchContent::kNone : BatchContent::kPixels;
  source.stream =
      std::make_unique<BatchStream>(&dataset, BatchStreamOptions{.order = order,
                                                                 .seed = experiment_.job.seed,
                                                                 .minibatch = room.samples,
                                                                 .prefetch = room.ahead,
                                                                 .content = content,
                                                                 .augmentation = augmentation,
                                                                 .pixels = Pixels()});
  return source;
}

// The next minibatch's size; 0 where the range has ended.
Result<int> Trainer::LoadNext(Source* source) {
  KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, source->stream->Next());
  const int size = static_cast<int>(minibatch.size);
  if (size == 0) return size;
  if (source->kept) {
    KUMO_RETURN_IF_ERROR(
        net_->Load(*formula_, *source->kept, minibatch.indices, minibatch.windows));
  } else if (formula_) {
    KUMO_RETURN_IF_ERROR(
        net_->Load(*formula_, {size, minibatch.pixels, minibatch.labels, minibatch.windows}));
  } else {
    KUMO_RETURN_IF_ERROR(net_->Load({size, minibatch.inputs, minibatch.labels}));
  }
  return size;
}

// A chunk is final when the first of its tensors is, whose gradients are the last that are made.
// What belongs to the last stage is final at the step's end, with everything else; so is chunk 0,
// whose message says how the step went. A factor that is worked out of all gradients, for clipping
// or for fp16's losses, leaves none final before.
void Trainer::FindStages() {
  if (experiment_.optimiser.clip_norm > 0 || experiment_.network.precision == "fp16") return;
  const std::vector<Range> stages = net_->gradient_stages();
  chunks_of_stage_.resize(stages.size());
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (chunk.index == 0 || chunk.segment == Segment::kStatistics) continue;
    const int first = spec_.layout.TensorAt(chunk.range.begin);
    for (size_t stage = 0; stage + 1 < stages.size(); ++stage) {
      if (stages[stage].begin <= first && first < stages[stage].end) {
        chunks_of_stage_[stage].push_back(chunk.index);
      }
    }
  }
}

DeviceArray<float> Trainer::MakeVectors(int count, const std::string& what) const {
  return {*backend_, count * spec_.layout.size(), what};
}

Status Trainer::Attach(const JobShape* shape) {
  shape_ = shape;
  base_ = MakeVectors(1, "the weights that blocks start from");
  if (experiment_.sync.mode == SyncMode::kBlock && experiment_.block.reset_local_state) {
    optimiser_slots_ = MakeVectors(optimiser_->slots(), "the optimiser's state");
  }
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  FindStages();
  LOG(INFO) << "memory of " << backend_->name() << ": " << DescribeMemory();
  return OkStatus();
}

int Trainer::CarriedVectors() const {
  return (CarriesResidual(experiment_) ? 1 : 0) + spec_.optimiser_slots;
}

std::string Trainer::DescribeMemory() const {
  const int64_t of_partition =
      CarriedVectors() * spec_.layout.size() * static_cast<int64_t>(sizeof(float));
  return backend_->DescribeMemory() + "; each partition adds " + Megabytes(of_partition);
}

Result<InitialWeights> Trainer::MakeInitialWeights() const {
  InitialWeights initial;
  Buffer<float> weights(spec_.layout.size());
  KUMO_RETURN_IF_ERROR(net_->InitialWeights(experiment_.job.seed, spec_.layout, weights.span()));
  if (const std::string& stored = experiment_.network.initial_weights; !stored.empty()) {
    Result<checkpoint::Origin> origin = TransferWeights(stored, spec_.layout, weights.span());
    if (!origin.ok()) {
      return FailedPrecondition("network.initial_weights: " + origin.status().message());
    }
    initial.origin = *std::move(origin);
  }
  for (const Chunk& chunk : shape_->map.chunks()) {
    initial.chunks.push_back(Pack(weights.span().subspan(chunk.range.begin, chunk.range.size())));
  }
  return initial;
}

void Trainer::Install(const InstallAction& install) {
  DeviceArray<float>& vector = install.vector == wire::START ? base_ : evaluated_;
  if (vector.empty()) vector = MakeVectors(1, "the weights that are evaluated");
  const Range range = shape_->map.chunks()[install.chunk].range;
  backend_->Decode(*install.codec, install.payload.bytes, range.size(),
                   vector.data() + range.begin);
}

Trainer::Carried Trainer::MakeCarried() const {
  Carried carried;
  if (CarriesResidual(experiment_)) carried.residual = MakeVectors(1, "a partition's residual");
  carried.optimiser = MakeVectors(spec_.optimiser_slots, "a partition's optimiser state");
  return carried;
}

void Trainer::Adopt(const AdoptAction& adopt) {
  Carried& carried = carried_[adopt.partition] = MakeCarried();
  const int first_optimiser = carried.residual.empty() ? 0 : 1;
  for (const AdoptAction::Array& array : adopt.arrays) {
    float* const vector =
        array.index < first_optimiser
            ? carried.residual.data()
            : carried.optimiser.data() + (array.index - first_optimiser) * spec_.layout.size();
    const Range range = shape_->map.chunks()[array.chunk].range;
    backend_->Write(array.payload.bytes.data(), BytesOf(range), vector + range.begin);
  }
}

void Trainer::Drop(int partition) { carried_.erase(partition); }

void Trainer::StartRange(const TrainAction& train) {
  const std::pair<int64_t, int> wanted{train.round.round, train.partition};
  if (started_ == wanted) return;
  if (started_) train_.stream->Cancel();
  train_.stream->Start(train.round.epoch,
                       shape_->plan.PartitionSamples(train.round, train.partition));
}

// Most likely the next leased partition follows, or the first one in the next round.
void Trainer::StartNextRange(const TrainAction& train) {
  started_.reset();
  auto next = carried_.upper_bound(train.partition);
  RoundPlan round = train.round;
  if (next == carried_.end()) {
    if (round.round + 1 >= shape_->plan.rounds()) return;
    round = shape_->plan.Round(round.round + 1);
    next = carried_.begin();
  }
  started_ = {round.round, next->first};
  train_.stream->Start(round.epoch, shape_->plan.PartitionSamples(round, next->first));
}

Result<TrainedBlock> Trainer::Train(const TrainAction& train,
                                    const Contribution::OnCoded& on_coded) {
  Carried& carried = carried_.at(train.partition);
  const TimeUs begin = clock_->NowUs();
  TrainedBlock block;
  StartRange(train);
  StartNextRange(train);
  backend_->Copy(base_.data(), static_cast<size_t>(base_.bytes()), weights_.data());
  if (train.round.mode == SyncMode::kBlock) {
    backend_->Zero(optimiser_slots_.data(), static_cast<size_t>(optimiser_slots_.bytes()));
  }
  Contribution contribution(
      *shape_, train.round,
      {base_.data(), weights_.data(), gradients_.data(), carried.residual.data()}, backend_.get());
  KUMO_ASSIGN_OR_RETURN(block.metrics, Minibatches(train, on_coded, &carried, &contribution));
  const TimeUs trained = clock_->NowUs();
  if (block.metrics.samples() == 0) {
    block.contributions.resize(shape_->map.chunks().size());
  } else {
    KUMO_RETURN_IF_ERROR(contribution.Finish());
    if (const auto bad = contribution.first_bad()) {
      return FailedPrecondition(
          "round " + std::to_string(train.round.round) + ", partition " +
          std::to_string(train.partition) + ": tensor " + TensorAt(bad->position) + " has become " +
          bad->codec->DescribeMisfit() + "; a lower schedule.learning_rate usually helps");
    }
    block.contributions = contribution.payloads();
  }
  if (train.save_state) KUMO_RETURN_IF_ERROR(AppendCarried(carried, &block));
  block.times.compute_ms = static_cast<double>(trained - begin) * 1e-3;
  block.times.coding_ms = static_cast<double>(clock_->NowUs() - trained) * 1e-3;
  return block;
}

Result<wire::Metrics> Trainer::Minibatches(const TrainAction& train,
                                           const Contribution::OnCoded& on_coded, Carried* carried,
                                           Contribution* contribution) {
  wire::Metrics metrics;
  const auto mark = [this](int stage) {
    if (!chunks_of_stage_[stage].empty()) backend_->Mark(stage);
  };
  const bool steps = train.round.mode == SyncMode::kBlock;
  const Range trained = {0, spec_.layout.segment(Segment::kUndecayed).end};
  for (int i = 0;; ++i) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const int size, LoadNext(&train_));
    if (size == 0) break;
    backend_->SetStep(ParametersOf(train, i, *carried));
    for (size_t stage = 0; !steps && on_coded && stage < chunks_of_stage_.size(); ++stage) {
      const std::vector<int>& chunks = chunks_of_stage_[stage];
      if (!chunks.empty()) contribution->CodeAt(static_cast<int>(stage), chunks, on_coded);
    }
    backend_->Repeat({size, steps, steps ? carried->optimiser.data() : nullptr}, [&] {
      net_->Train(steps || chunks_of_stage_.empty() ? nullptr : std::function<void(int)>(mark));
      backend_->MeasureGradients(gradients_.data(), trained.size());
      if (steps) {
        OptimiserStep(carried);
      } else {
        backend_->ScaleGradients(gradients_.data(), trained.size());
      }
    });
    metrics.set_samples(metrics.samples() + size);
  }
  KUMO_RETURN_IF_ERROR(TakeSums(&metrics));
  return metrics;
}

StepParameters Trainer::ParametersOf(const TrainAction& train, int minibatch,
                                     const Carried& carried) const {
  const auto& sync = experiment_.sync;
  const RoundPlan& round = train.round;
  StepParameters step;
  step.streams = {experiment_.job.seed, static_cast<uint64_t>(train.partition),
                  static_cast<uint64_t>(round.round), static_cast<uint64_t>(minibatch)};
  step.optimiser = optimiser_.get();
  // All partitions advance together: the position counts what they have seen so far.
  step.undecayed.learning_rate = schedule_->RateAt(
      std::min(round.first_sample + int64_t{minibatch} * sync.minibatch * sync.partitions,
               round.first_sample + round.samples.size()));
  step.undecayed.step = minibatch + 1;
  if (!carried.optimiser.empty()) step.undecayed.step += (round.step - 1) * sync.block;
  step.decayed = step.undecayed;
  step.decayed.weight_decay = experiment_.optimiser.weight_decay;
  step.clip_norm = experiment_.optimiser.clip_norm;
  return step;
}

void Trainer::OptimiserStep(Carried* carried) {
  float* const slots =
      carried->optimiser.empty() ? optimiser_slots_.data() : carried->optimiser.data();
  for (Segment segment : {Segment::kDecayed, Segment::kUndecayed}) {
    const Range range = spec_.layout.segment(segment);
    float* slot_parts[Optimiser::kMaxSlots] = {};
    for (int i = 0; i < optimiser_->slots(); ++i) {
      slot_parts[i] = slots + i * spec_.layout.size() + range.begin;
    }
    backend_->OptimiserStep(segment, gradients_.data() + range.begin, range.size(),
                            weights_.data() + range.begin, slot_parts);
  }
}

std::string Trainer::TensorAt(int64_t position) const {
  const int tensor = spec_.layout.TensorAt(position);
  return tensor < 0 ? "?" : spec_.layout.tensors()[tensor].name;
}

Result<Payload> Trainer::ReadChunk(const float* vector, const Chunk& chunk) const {
  auto copy = std::make_shared<Buffer<float>>(chunk.range.size());
  KUMO_RETURN_IF_ERROR(
      backend_->Read(vector + chunk.range.begin, BytesOf(chunk.range), copy->data()));
  return Payload{copy, std::as_bytes(std::as_const(*copy).span())};
}

Status Trainer::AppendCarried(const Carried& carried, TrainedBlock* block) const {
  std::vector<const float*> vectors;
  if (!carried.residual.empty()) vectors.push_back(carried.residual.data());
  for (int i = 0; i < spec_.optimiser_slots; ++i) {
    vectors.push_back(carried.optimiser.data() + i * spec_.layout.size());
  }
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    for (size_t i = 0; i < vectors.size(); ++i) {
      KUMO_ASSIGN_OR_RETURN(Payload payload, ReadChunk(vectors[i], chunk));
      block->carried.push_back({chunk.index, static_cast<int>(i), std::move(payload)});
    }
  }
  return OkStatus();
}

Result<wire::Metrics> Trainer::Evaluate(const EvaluateAction& evaluate) {
  DeviceArray<float>& vector = evaluate.vector == wire::START ? base_ : evaluated_;
  return EvaluateRange(shape_->plan.EvaluationSamples(spec_.validation_samples, evaluate.partition),
                       vector.data());
}

Result<wire::Metrics> Trainer::EvaluateAll(std::span<const float> weights) {
  backend_->Write(weights.data(), weights.size_bytes(), weights_.data());
  return EvaluateRange({0, spec_.validation_samples}, weights_.data());
}

Result<wire::Metrics> Trainer::EvaluateRange(Range samples, float* weights) {
  wire::Metrics metrics;
  // Where the weights to evaluate could not be had there is nothing to run on.
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights, gradients_.data()));
  validation_.stream->Start(0, samples);
  while (true) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const int size, LoadNext(&validation_));
    if (size == 0) break;
    net_->Evaluate();
    metrics.set_samples(metrics.samples() + size);
  }
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights_.data(), gradients_.data()));
  KUMO_RETURN_IF_ERROR(TakeSums(&metrics));
  return metrics;
}

// What the net has added up, waited for.
Status Trainer::TakeSums(wire::Metrics* metrics) {
  KUMO_ASSIGN_OR_RETURN(const StepResult sums, net_->TakeSums());
  metrics->set_loss_sum(sums.loss_sum);
  metrics->set_correct(sums.correct);
  return OkStatus();
}

}  // namespace kumo
