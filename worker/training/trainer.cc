#include "worker/training/trainer.h"

#include <algorithm>
#include <cstdint>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"
#include "worker/training/found_picture.h"
#include "worker/training/initial_weights.h"
#include "worker/training/step_position.h"

namespace kumo {

Trainer::Trainer(const Experiment& experiment, const Clock* clock, OpenedJob job)
    : experiment_(experiment),
      clock_(clock),
      job_(std::move(job)),
      backend_(job_.backend.get()),
      net_(job_.net.get()),
      spec_(job_.spec),
      weights_(experiment, &job_.spec.layout, job_.backend.get()) {
  gradients_ = MakeVectors(1, "the gradients");
  detector_ = Detector::Of(net_);
  BatchStreamOptions options{.order = BatchOrder::kShuffled,
                             .seed = experiment_.job.seed,
                             .minibatch = job_.rooms.train.samples,
                             .prefetch = job_.rooms.train.ahead,
                             .threads = experiment_.data.threads,
                             .transforms = job_.datasets.transforms};
  train_.emplace(&job_.datasets.trained(), options);
  options = {.order = BatchOrder::kSequential,
             .minibatch = job_.rooms.validation.samples,
             .prefetch = job_.rooms.validation.ahead,
             .threads = experiment_.data.threads,
             .transforms = job_.datasets.validation_transforms};
  validation_.emplace(job_.datasets.validation.get(), options);
}

Result<std::unique_ptr<Trainer>> Trainer::Make(const Experiment& experiment, const Clock* clock) {
  KUMO_ASSIGN_OR_RETURN(OpenedJob job, OpenJob(experiment));
  return Make(experiment, std::move(job), clock);
}

Result<std::unique_ptr<Trainer>> Trainer::Make(const Experiment& experiment, OpenedJob job,
                                               const Clock* clock) {
  std::unique_ptr<Trainer> trainer(new Trainer(experiment, clock, std::move(job)));
  KUMO_RETURN_IF_ERROR(trainer->backend_->Wait());
  KUMO_RETURN_IF_ERROR(trainer->net_->Bind(trainer->spec_.layout, trainer->weights_.data(),
                                           trainer->gradients_.data()));
  return trainer;
}

DeviceArray<float> Trainer::MakeVectors(int count, const std::string& what) const {
  return {*backend_, count * spec_.layout.size(), what};
}

Status Trainer::Attach(const JobShape* shape) {
  shape_ = shape;
  weights_.Attach(shape, job_.optimiser.get(), net_->matrices());
  if (shape_->policy.shares_local_state()) {
    optimiser_slots_ = MakeVectors(job_.optimiser->slots(), "the optimiser's state");
  }
  optimiser_step_.emplace(spec_.layout, net_->matrices(), job_.optimiser->traits(), backend_);
  if (in_parts()) gradient_sum_ = MakeVectors(1, "the sum of the parts' gradients");
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  chunks_of_stage_ = ReadyChunks(experiment_, net_->gradient_stages(), spec_.layout, shape_->map);
  LOG(INFO) << "memory of " << backend_->name() << ": " << DescribeMemory();
  return OkStatus();
}

std::string Trainer::DescribeMemory() const {
  const int64_t of_partition =
      weights_.partitions().count() * spec_.layout.size() * static_cast<int64_t>(sizeof(float));
  return backend_->DescribeMemory() + "; each partition adds " + Megabytes(of_partition);
}

Result<InitialWeights> Trainer::MakeInitialWeights() {
  Buffer<float> weights(spec_.layout.size());
  KUMO_RETURN_IF_ERROR(net_->InitialWeights(experiment_.job.seed, spec_.layout, weights.span()));
  return kumo::MakeInitialWeights(experiment_, spec_.layout, shape_->map, std::move(weights));
}

Range Trainer::SamplesOf(const Part& part) const {
  return part.ahead ? shape_->plan.AheadSamples(part.round, part.partition)
                    : shape_->plan.MainSamples(part.round, part.partition);
}

void Trainer::StartRange(const Part& part) {
  if (started_ == part) return;
  if (started_) train_->Cancel();
  train_->Start(part.round.epoch, SamplesOf(part));
}

// The part that most likely follows: the front of the partition's next slice, the next leased
// partition, or the first one of the next round.
std::optional<Trainer::Part> Trainer::After(const Part& part) const {
  const JobPlan& plan = shape_->plan;
  const int64_t round = part.round.round - (part.ahead ? 1 : 0);  // of the block that ends
  const bool last = round + 1 >= plan.rounds();
  if (!part.ahead && !last) {
    const Part front{plan.Round(round + 1), part.partition, true};
    if (SamplesOf(front).size() > 0) return front;
  }
  if (const int next = weights_.partitions().Next(part.partition); next >= 0) {
    return Part{plan.Round(round), next, false};
  }
  if (last) return std::nullopt;
  return Part{plan.Round(round + 1), weights_.partitions().Next(-1), false};
}

// Begins to read the data of the part that follows. Another order costs time only: StartRange then
// cancels.
void Trainer::StartNextRange(const Part& part) {
  started_ = After(part);
  if (started_) train_->Start(started_->round.epoch, SamplesOf(*started_));
}

// Order of the work on the device: copy of the base weights and the way ahead of them, the steps of
// the block, copy of its end if steps ahead follow, coding of the contribution. All of it is
// queued; the host waits in Net::TakeSums and Contribution::Finish only. Meanwhile the batch stream
// reads the data of the next computation.
Result<TrainedBlock> Trainer::Train(const TrainAction& train, const OnCoded& on_coded) {
  PartitionArrays::Arrays& carried = weights_.partitions().Of(train.partition);
  const TimeUs begin = clock_->NowUs();
  TrainedBlock block;
  const Part part{train.round, train.partition, false};
  StartRange(part);
  StartNextRange(part);
  weights_.Begin(train, gradients());
  const bool begun = shape_->plan.AheadSamples(train.round, train.partition).size() > 0;
  if (!begun && train.round.local_steps && shape_->policy.resets_local_state()) {
    Clear(&OptimiserState(&carried));
  }
  KUMO_ASSIGN_OR_RETURN(
      block.metrics, Minibatches(part, on_coded, &carried, weights_.contribution(), &block.weight));
  weights_.End(train);
  block.times.compute_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  return block;
}

Status Trainer::Code(const TrainAction& train, TrainedBlock* block) {
  const TimeUs begin = clock_->NowUs();
  KUMO_RETURN_IF_ERROR(weights_.Code(train, block));
  if (!codes_beside_steps() || !shape_->TrainsAhead(train.round.round, train.partition)) {
    block->times.coding_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  }
  return OkStatus();
}

Result<TrainedAhead> Trainer::StepAhead(const RoundPlan& round, int partition) {
  PartitionArrays::Arrays& carried = weights_.partitions().Of(partition);
  const TimeUs begin = clock_->NowUs();
  const Part part{round, partition, true};
  TrainedAhead trained;
  StartRange(part);
  StartNextRange(part);
  if (shape_->policy.resets_local_state()) Clear(&OptimiserState(&carried));
  KUMO_ASSIGN_OR_RETURN(const MetricSums metrics,
                        Minibatches(part, nullptr, &carried, nullptr, nullptr));
  trained.samples = metrics.samples;
  trained.compute_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  return trained;
}

void Trainer::Clear(DeviceArray<float>* array) {
  backend_->Zero(array->data(), static_cast<size_t>(array->bytes()));
}

Result<Trainer::Loaded> Trainer::LoadNext() {
  KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, train_->Next());
  Loaded loaded{.size = static_cast<int>(minibatch.size)};
  if (loaded.size == 0) return loaded;
  KUMO_RETURN_IF_ERROR(net_->Load(minibatch.samples()));
  if (detector_) {
    loaded.positives = detector_->Positives(job_.datasets.trained().fields(), minibatch.samples());
  }
  return loaded;
}

void Trainer::AddPart(const Loaded& part, const BlockStep& step, int64_t before) {
  const int64_t numbers = weights_.TrainedNumbers();
  float* const sum = gradient_sum_.data();
  if (step.part == 0) backend_->Zero(sum, static_cast<size_t>(gradient_sum_.bytes()));
  if (!detector_) {
    const float share = static_cast<float>(part.size) / static_cast<float>(step.samples);
    backend_->AddTo(share, gradients_.data(), numbers, sum);
    return;
  }
  // The divisor of the whole minibatch is known only after its last part: `sum` is always the mean
  // of the parts so far, weighed by their positives.
  if (part.positives == 0) return;
  const float share =
      static_cast<float>(part.positives) / static_cast<float>(before + part.positives);
  if (before > 0) backend_->AddTo(-share, sum, numbers, sum);
  backend_->AddTo(share, gradients_.data(), numbers, sum);
}

Result<MetricSums> Trainer::Minibatches(const Part& part, const OnCoded& on_coded,
                                        PartitionArrays::Arrays* carried,
                                        Contribution* contribution,
                                        std::optional<int64_t>* weight) {
  MetricSums metrics;
  if (weight != nullptr && detector_) *weight = 0;
  const auto mark = [this](int stage) {
    if (!chunks_of_stage_[stage].empty()) backend_->Mark(stage);
  };
  const bool steps = part.round.local_steps;
  const Range slice = shape_->plan.PartitionSamples(part.round, part.partition);
  const int64_t before = SamplesOf(part).begin - slice.begin;
  int64_t positives = 0;  // of the minibatch's parts so far
  while (true) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const Loaded loaded, LoadNext());
    const int size = loaded.size;
    if (size == 0) break;
    if (weight != nullptr && *weight) **weight += loaded.positives;
    const BlockStep step = StepAt(experiment_, before + metrics.samples, slice.size());
    backend_->SetStep(ParametersOf(experiment_, job_, part.round, part.partition, step,
                                   weights_.StepsBefore(part.round, part.partition, *carried)));
    // A gradient is of one minibatch, whose weight is known before its chunks are coded.
    if (!steps && on_coded && !in_parts() && *weight != 0) {
      const auto on_weighed = [on_coded, of = *weight](std::vector<CodedChunk> coded) {
        for (CodedChunk& chunk : coded) chunk.weight = of;
        on_coded(std::move(coded));
      };
      for (size_t stage = 0; stage < chunks_of_stage_.size(); ++stage) {
        const std::vector<int>& chunks = chunks_of_stage_[stage];
        if (!chunks.empty()) contribution->CodeAt(static_cast<int>(stage), chunks, on_weighed);
      }
    }
    backend_->Repeat({size, steps, steps ? carried->optimiser.data() : nullptr}, [&] {
      net_->Train(steps || chunks_of_stage_.empty() ? nullptr : std::function<void(int)>(mark));
      if (!in_parts()) FinishMinibatch(steps, carried);
    });
    metrics.samples += size;
    if (!in_parts()) continue;
    if (step.part == 0) positives = 0;
    AddPart(loaded, step, positives);
    positives += loaded.positives;
    if (metrics.samples % experiment_.sync.minibatch == 0 ||
        before + metrics.samples == slice.size()) {
      FinishMinibatch(steps, carried);
    }
  }
  if (weight != nullptr && *weight == 0) contribution->Discard();
  KUMO_ASSIGN_OR_RETURN(metrics.sums, net_->TakeSums());
  return metrics;
}

void Trainer::FinishMinibatch(bool steps, PartitionArrays::Arrays* carried) {
  backend_->MeasureGradients(gradients(), weights_.TrainedNumbers());
  if (steps) {
    optimiser_step_->Queue(gradients(), weights_.data(), OptimiserState(carried).data());
  } else {
    backend_->ScaleGradients(gradients(), weights_.TrainedNumbers());
  }
}

Result<Evaluation> Trainer::Evaluate(const EvaluateAction& evaluate) {
  return EvaluateRange(shape_->plan.EvaluationSamples(spec_.validation_samples, evaluate.partition),
                       weights_.installed().Of(evaluate.vector));
}

Result<MetricSums> Trainer::EvaluateAll(std::span<const float> weights) {
  backend_->Write(weights.data(), weights.size_bytes(), weights_.data());
  KUMO_ASSIGN_OR_RETURN(Evaluation evaluation,
                        EvaluateRange({0, spec_.validation_samples}, weights_.data()));
  return std::move(evaluation.metrics);
}

Status Trainer::PredictAll(std::span<const float> weights, int output, const TakeOutput& take) {
  backend_->Write(weights.data(), weights.size_bytes(), weights_.data());
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights_.data(), gradients_.data()));
  std::vector<float> numbers;
  validation_->Start(0, {0, spec_.validation_samples});
  while (true) {
    KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, validation_->Next());
    if (minibatch.size == 0) return OkStatus();
    KUMO_RETURN_IF_ERROR(net_->Load(minibatch.samples()));
    numbers.resize(static_cast<size_t>(minibatch.size * net_->output_shape(output).size()));
    KUMO_RETURN_IF_ERROR(net_->Predict(output, numbers));
    take(minibatch, numbers);
  }
}

Result<Evaluation> Trainer::EvaluateRange(Range samples, float* weights) {
  Evaluation evaluation;
  MetricSums& metrics = evaluation.metrics;
  // Wait reports an allocation of the evaluated weights that failed.
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights, gradients_.data()));
  validation_->Start(0, samples);
  while (true) {
    if (cancelled_) return Aborted("cancelled");
    KUMO_ASSIGN_OR_RETURN(const Minibatch minibatch, validation_->Next());
    if (minibatch.size == 0) break;
    KUMO_RETURN_IF_ERROR(net_->Load(minibatch.samples()));
    net_->Evaluate();
    metrics.samples += minibatch.size;
    if (!detector_) continue;
    KUMO_ASSIGN_OR_RETURN(const std::vector<Detector::Compared> compared,
                          detector_->Compare(validation_->fields(), minibatch.samples()));
    for (const Detector::Compared& one : compared) metrics.detections.Add(one.found, one.objects);
    if (minibatch.positions.begin > 0) continue;
    evaluation.picture =
        DrawFound(validation_->fields(), minibatch.samples(), compared, spec_.class_names);
  }
  KUMO_RETURN_IF_ERROR(net_->Bind(spec_.layout, weights_.data(), gradients_.data()));
  KUMO_ASSIGN_OR_RETURN(metrics.sums, net_->TakeSums());
  return evaluation;
}

BlockStep StepAt(const Experiment& experiment, int64_t trained, int64_t block) {
  const int64_t minibatch = experiment.sync.minibatch;
  const int64_t part = minibatch / experiment.sync.minibatch_parts;
  return {
      .minibatch = static_cast<int>(trained / minibatch),
      .part = static_cast<int>(trained % minibatch / part),
      .samples = static_cast<int>(std::min(minibatch, block - trained / minibatch * minibatch))};
}

StepParameters ParametersOf(const Experiment& experiment, const OpenedJob& job,
                            const RoundPlan& round, int partition, const BlockStep& minibatch,
                            int64_t steps_before) {
  const auto& sync = experiment.sync;
  StepParameters step;
  const int64_t computed = int64_t{minibatch.minibatch} * sync.minibatch_parts + minibatch.part;
  step.streams = {experiment.job.seed, static_cast<uint64_t>(partition),
                  static_cast<uint64_t>(round.round), static_cast<uint64_t>(computed)};
  step.optimiser = job.optimiser.get();
  const int64_t position = StepPosition(experiment, round, minibatch.minibatch);
  step.undecayed.learning_rate = job.schedule->RateAt(position, minibatch.samples);
  step.undecayed.momentum = job.schedule->MomentumAt(position, minibatch.samples);
  step.undecayed.step = steps_before + minibatch.minibatch + 1;
  step.decayed = step.undecayed;
  step.decayed.weight_decay = experiment.optimiser.weight_decay;
  step.clip_norm = experiment.optimiser.clip_norm;
  return step;
}

// The backward pass computes gradients from the last tensor to the first, so a chunk is final with
// its first tensor. Chunks of the last stage are final only at the end of the step; so is chunk 0,
// whose message carries the step's metrics. A factor computed from all gradients (clipping, fp16
// loss scaling) leaves no chunk final before the end, nor does a minibatch in parts, nor a codec of
// tensors, which codes all chunks together.
std::vector<std::vector<int>> ReadyChunks(const Experiment& experiment,
                                          std::span<const Range> stages,
                                          const ParameterLayout& layout, const ShardMap& map) {
  if (experiment.optimiser.clip_norm > 0 || experiment.network.precision == Precision::kFp16 ||
      experiment.sync.minibatch_parts > 1 || experiment.sync.PushCodec().traits().uses_tensors) {
    return {};
  }
  std::vector<std::vector<int>> chunks(stages.size());
  for (const Chunk& chunk : map.chunks()) {
    if (chunk.index == 0 || !chunk.trained()) continue;
    const int first = layout.TensorAt(chunk.range.begin);
    for (size_t stage = 0; stage + 1 < stages.size(); ++stage) {
      if (stages[stage].begin <= first && first < stages[stage].end) {
        chunks[stage].push_back(chunk.index);
      }
    }
  }
  return chunks;
}

}  // namespace kumo
