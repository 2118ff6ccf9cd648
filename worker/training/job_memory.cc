#include "worker/training/job_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/memory_budget.h"
#include "common/base/text.h"
#include "common/job/fields.h"
#include "common/job/job_identity.h"
#include "common/job/round_policy.h"
#include "common/job/server_memory.h"
#include "data/open_datasets.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/host_memory.h"
#include "models/net/net.h"
#include "models/network.h"
#include "models/ops/batch_normalisation/spec.h"
#include "models/weight_step.h"
#include "worker/training/initial_weights.h"
#include "worker/training/opened_job.h"

namespace kumo {
namespace {

constexpr int64_t kFloat = sizeof(float);

// An idle worker: program pages, thread stacks and library state (docs/measurements.md, "Memory").
constexpr int64_t kProcessBytes = int64_t{36} << 20;

int64_t Quotient(int64_t n, int64_t parts) { return (n + parts - 1) / parts; }

// slices: the number of slices that may be started and not ended.
MinibatchRoom RoomFor(int minibatch, int prefetch, int64_t largest_slice, int slices) {
  MinibatchRoom room;
  room.samples = static_cast<int>(std::clamp<int64_t>(largest_slice, 1, minibatch));
  const int64_t there = slices * Quotient(std::max<int64_t>(largest_slice, 1), room.samples);
  room.ahead = static_cast<int>(std::min<int64_t>(prefetch, there));
  return room;
}

// The consumer holds one minibatch more than are read ahead.
void AddMinibatches(const char* what, const char* setting, const MinibatchRoom& room,
                    const Fields& fields, MemoryNeed* need) {
  const int64_t sample = BytesOf(fields) + static_cast<int64_t>(sizeof(int64_t));
  need->Add(what, {room.ahead + int64_t{1}, room.samples, sample},
            std::string(setting) + ", data.prefetch");
}

// Memory of the network on the CPU for minibatches of the given size.
Result<int64_t> NetBytes(const model::Network& network, const Experiment& experiment,
                         const Fields& fields, int max_batch) {
  CountedMemory counted;
  const std::unique_ptr<Backend> backend = MakeCpuBackendIn(&counted, experiment.network.threads);
  KUMO_ASSIGN_OR_RETURN(const auto net, Net::Make(network, max_batch, backend.get()));
  KUMO_RETURN_IF_ERROR(BindInputs(experiment.data.reader, fields, {}, net.get())
                           .WithContext(experiment.network.file));
  return counted.bytes();
}

// Vectors as long as the weights, on the worker's device.
void AddVectors(const Experiment& experiment, const JobSpec& spec, const Graph& graph,
                int64_t partitions, MemoryNeed* need) {
  const int64_t vector = spec.layout.size() * kFloat;
  const RoundPolicy policy(experiment);
  const OptimiserTraits& optimiser = TraitsOf(experiment.optimiser.type);
  need->Add("weights and gradients", {vector, policy.evaluates_apart() ? 4 : 3}, "network.file");
  if (experiment.sync.minibatch_parts > 1) {
    need->Add("sum of the parts' gradients", {vector}, "sync.minibatch_parts");
  }
  if (policy.shares_local_state()) {
    need->Add("local optimiser state", {vector, optimiser.slots}, "optimiser.type");
  }
  if (optimiser.steps_matrices) {
    need->Add("the optimiser's matrices",
              {WeightStep::ScratchFloats(MatricesOf(graph), optimiser), kFloat}, "optimiser.type");
  }
  need->Add("carried state of partitions", {vector, policy.carried().count(), partitions},
            "sync.partitions, sync.push_codec, block.reset_local_state");
}

// Buffers in the host's memory for messages to and from the servers.
void AddMessages(const Experiment& experiment, const JobSpec& spec, int64_t partitions,
                 MemoryNeed* need) {
  const int64_t vector = spec.layout.size() * kFloat;
  // With a delay, rounds are open together (OpenRequests).
  const bool delays = experiment.sync.mode == SyncMode::kGradient;
  need->Add("contributions to send",
            {ContributionBytes(experiment, spec.layout.size()), partitions,
             1 + (delays ? experiment.sync.Delay() : 0)},
            "sync.push_codec, sync.partitions, sync.overlap");
  need->Add("weights received", {vector, 2}, "network.file");
  need->Add("carried state while it is saved",
            {vector, RoundPolicy(experiment).carried().count(), partitions},
            "sync.partitions, sync.push_codec, block.reset_local_state");
}

constexpr int kPublishedImages = 32;  // a round, of detectors with published figures

// Settings with which a detector is known to be less accurate than published.
void AddNotesOnDetector(const Experiment& experiment, std::vector<std::string>* notes) {
  const Experiment::Network& network = experiment.network;
  const std::vector<std::string> words = WordsForNames(network);
  if (network.initial_weights.empty() && !words.empty()) {
    notes->push_back(
        "network.initial_weights is not set, so a new job starts from random weights; published "
        "figures come from a pre-trained backbone: start with --from FILE --partial --set "
        "network.initial_names=" +
        words.front() + " (there are: " + Join(words) + "; docs/detection.md)");
  }
  const bool together =
      experiment.sync.mode != SyncMode::kBlock && !experiment.sync.AppliesOnArrival();
  const int images = experiment.sync.minibatch * (together ? experiment.sync.partitions : 1);
  if (images >= kPublishedImages) return;
  notes->push_back(
      "the loss of the detector is divided by the matched boxes of " + Counted(images, "image") +
      (together ? " (sync.minibatch x sync.partitions)" : " (sync.minibatch)") +
      "; published figures come from " + std::to_string(kPublishedImages) +
      " images, and with 8 SSD300 loses .03 of mean average "
      "precision on Pascal VOC: raise the number of images, or lower schedule.learning_rate");
}

// Notes a reset of Adam's state after less than a tenth of the second moment's memory, 1 / (1 -
// beta2) steps.
void AddNoteOnLocalState(const Experiment& experiment, std::vector<std::string>* notes) {
  const OptimiserTraits& optimiser = TraitsOf(experiment.optimiser.type);
  const bool is_adam = optimiser.corrects_bias && !optimiser.steps_matrices;
  const double enough = 0.1 / (1 - static_cast<double>(experiment.optimiser.beta2));
  if (experiment.sync.mode != SyncMode::kBlock || experiment.sync.block >= enough ||
      !experiment.block.reset_local_state || !is_adam) {
    return;
  }
  notes->push_back(
      "block.reset_local_state = true: each block of " + std::to_string(experiment.sync.block) +
      " minibatches begins with steps of " + optimiser.name +
      " that have the full learning rate in every weight, however small its gradient: set it to "
      "false, or raise sync.block (docs/block_momentum.md)");
}

// Notes running statistics that may overshoot: they move by a = 1 - momentum of their distance from
// a minibatch's. With a distance that is d rounds old, w <- w - a (w_old - new) overshoots if a >
// d^d / (d + 1)^(d + 1). Then a variance may become negative, whose root is NaN.
void AddNoteOnLateStatistics(const Experiment& experiment, const Graph& graph,
                             std::vector<std::string>* notes) {
  if (!experiment.sync.AppliesOnArrival()) return;
  const double d = experiment.sync.staleness;
  for (const Node& node : graph.nodes) {
    const auto* const norm = node.As<BatchNormalisationSpec>();
    if (norm == nullptr || norm->frozen ||
        1 - static_cast<double>(norm->momentum) <= std::pow(d / (d + 1), d) / (d + 1)) {
      continue;
    }
    notes->push_back("sync.staleness = " + std::to_string(experiment.sync.staleness) +
                     ": a contribution that is so many rounds late may make a running variance "
                     "of batch_normalisation \"" +
                     node.name +
                     "\" negative, and an evaluation NaN: lower it, or raise the momentum of these "
                     "layers");
    return;
  }
}

// Layers whose result does not depend on their input (other normalisations of a single number are
// no network: PlanNetwork), and notes on settings.
std::vector<std::string> NotesOf(const Experiment& experiment, const Graph& graph,
                                 const MinibatchRoom& room) {
  std::vector<std::string> notes;
  if (graph.detector() != nullptr) AddNotesOnDetector(experiment, &notes);
  AddNoteOnLocalState(experiment, &notes);
  AddNoteOnLateStatistics(experiment, graph, &notes);
  for (const Node& node : graph.nodes) {
    const auto* const norm = node.As<BatchNormalisationSpec>();
    if (norm == nullptr || norm->frozen || room.least * norm->shape.plane() > 1) continue;
    notes.push_back(
        "network.file: batch_normalisation \"" + node.name +
        "\" normalises a single number if a minibatch has one sample, as some have here: "
        "its result is then its shift, independent of the input. Choose sync.minibatch and "
        "sync.partitions so that no slice leaves one sample over, or put the layer before "
        "the pooling");
  }
  return notes;
}

}  // namespace

Result<MinibatchRooms> MinibatchRooms::Of(const Experiment& experiment, int64_t train_samples,
                                          int64_t validation_samples) {
  JobSpec spec;
  spec.train_samples = train_samples;
  KUMO_ASSIGN_OR_RETURN(const JobPlan plan, PlanFor(experiment, spec));
  MinibatchRooms rooms;
  const int prefetch = experiment.data.prefetch;
  const int part = experiment.sync.minibatch / experiment.sync.minibatch_parts;
  rooms.train = RoomFor(part, prefetch, plan.LargestSlice(), /*slices=*/2);
  rooms.validation = RoomFor(experiment.evaluation.minibatch, prefetch, validation_samples,
                             /*slices=*/1);
  rooms.train.least = static_cast<int>(plan.SmallestPart(part));
  return rooms;
}

Status JobMemory::CheckWorkerFits() const {
  const Result<MemoryRoom> room = RoomInProcess();
  return room.ok() ? worker.CheckFits(*room) : OkStatus();
}

Status CheckHasNetwork(const Experiment& experiment) {
  if (!experiment.worker.OwnsModel()) return OkStatus();
  return FailedPrecondition("worker.command = " + experiment.worker.command +
                            ": that program has the job's model and data, and this one knows "
                            "neither; kumo launch starts it");
}

Result<model::Network> NetworkOf(const Experiment& experiment) {
  KUMO_RETURN_IF_ERROR(CheckHasNetwork(experiment));
  const std::string& file = experiment.network.file;
  if (TraitsOf(experiment.data.reader).samples != SampleKind::kTokens) {
    return LoadNetwork(file, {.classes = experiment.data.classes});
  }
  if (!FileNeedsVocabulary(file)) return LoadNetwork(file);
  KUMO_ASSIGN_OR_RETURN(const ExtentsOfDatasets data, MeasureDatasets(experiment.data));
  return LoadNetwork(file, {.vocabulary = data.train.vocabulary});
}

Result<JobMemory> MemoryOfJob(const Experiment& experiment, int servers) {
  KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(experiment));
  return MemoryOfJob(experiment, network, servers);
}

Result<JobMemory> MemoryOfJob(const Experiment& experiment, const model::Network& network,
                              int servers) {
  KUMO_ASSIGN_OR_RETURN(const Graph plan, PlanNetwork(network));
  KUMO_ASSIGN_OR_RETURN(const ExtentsOfDatasets data, MeasureDatasets(experiment.data));
  KUMO_RETURN_IF_ERROR(CheckPaddedMasks(experiment.data, data.train.fields, plan)
                           .WithContext(experiment.network.file));
  KUMO_ASSIGN_OR_RETURN(
      const MinibatchRooms rooms,
      MinibatchRooms::Of(experiment, data.train.samples, data.validation.samples));
  JobSpec spec;
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(plan.tensors()));

  const bool on_cpu = experiment.network.device.is_cpu();
  const int64_t partitions =
      Quotient(experiment.sync.partitions, std::max(1, experiment.cluster.workers));
  MemoryNeed worker("a worker");
  worker.Add("process", {kProcessBytes});
  const bool text = TraitsOf(experiment.data.reader).one_text;
  worker.Add("training data", {data.train.bytes},
             text ? "data.text" : "data.train_images, data.train_limit");
  worker.Add(
      "validation data", {data.validation.bytes},
      text ? "data.text, data.validation_share" : "data.validation_images, data.validation_limit");
  AddMinibatches("training minibatches read ahead", "sync.minibatch, sync.minibatch_parts",
                 rooms.train, data.train.fields, &worker);
  AddMinibatches("validation minibatches read ahead", "evaluation.minibatch", rooms.validation,
                 data.validation.fields, &worker);
  if (on_cpu) {
    KUMO_ASSIGN_OR_RETURN(const int64_t net,
                          NetBytes(network, experiment, data.train.fields, rooms.largest()));
    worker.Add("activations and layer buffers", {net},
               rooms.train.samples >= rooms.validation.samples
                   ? "sync.minibatch, sync.minibatch_parts"
                   : "evaluation.minibatch");
    AddVectors(experiment, spec, plan, partitions, &worker);
  }
  AddMessages(experiment, spec, partitions, &worker);
  JobMemory memory{std::move(worker), MemoryOfServer(experiment, spec, servers)};
  for (const TensorSpec& tensor : spec.layout.tensors()) {
    if (tensor.segment != Segment::kStatistics) memory.parameters += tensor.size();
  }
  for (const std::string& line : data.train.notes.Lines()) {
    memory.notes.push_back("data.train_images: " + line);
  }
  for (const std::string& line : data.validation.notes.Lines()) {
    memory.notes.push_back("data.validation_images: " + line);
  }
  for (std::string& note : NotesOf(experiment, plan, rooms.train)) {
    memory.notes.push_back(std::move(note));
  }
  return memory;
}

}  // namespace kumo
