#include "server/shard.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <glog/logging.h>

#include "server/rules/aggregate.h"

namespace kumo {
namespace {

Payload BytesOf(const FloatArray& array) {
  return {array, std::as_bytes(std::as_const(*array).span())};
}

FloatArray MakeArray(size_t numbers) { return std::make_shared<Buffer<float>>(numbers); }

FloatArray CopyFloats(std::span<const std::byte> bytes) {
  FloatArray array = MakeArray(bytes.size() / sizeof(float));
  std::memcpy(array->data(), bytes.data(), bytes.size());
  return array;
}

// An array for a chunk's next version: `old` again where the chunk's own `holders` names for it are
// the only ones. Others would be messages on their way and snapshots being written.
FloatArray Recycle(const FloatArray& old, long holders, size_t numbers) {
  if (!old || old.use_count() != holders) return MakeArray(numbers);
  // use_count() is a relaxed read: see all that the last other holder did.
  std::atomic_thread_fence(std::memory_order_acquire);
  return old;
}

bool Overlaps(const StateArray& array, Range range) {
  return array.begin < range.end &&
         array.begin + static_cast<int64_t>(array.numbers.size()) > range.begin;
}

// Where `array` overlaps `range`, copies its numbers to `out` (which starts at range.begin).
// Returns how many.
int64_t CopyOverlap(const StateArray& array, Range range, Buffer<float>* out) {
  const int64_t begin = std::max(array.begin, range.begin);
  const int64_t end = std::min(array.begin + static_cast<int64_t>(array.numbers.size()), range.end);
  if (begin >= end) return 0;
  std::copy_n(array.numbers.data() + (begin - array.begin), end - begin,
              out->data() + (begin - range.begin));
  return end - begin;
}

std::string Where(const wire::Header& header) {
  return "partition " + std::to_string(header.partition()) + ", round " +
         std::to_string(header.round()) + ", chunk " + std::to_string(header.chunk());
}

}  // namespace

Result<std::unique_ptr<Shard>> Shard::Make(const ShardSettings& settings,
                                           const Experiment& experiment, const JobPlan& plan,
                                           ParameterLayout layout, VersionObserver observer) {
  std::unique_ptr<Shard> shard(
      new Shard(settings, experiment, plan, std::move(layout), std::move(observer)));
  KUMO_RETURN_IF_ERROR(shard->MakeRules());
  return shard;
}

Shard::Shard(const ShardSettings& settings, const Experiment& experiment, const JobPlan& plan,
             ParameterLayout layout, VersionObserver observer)
    : settings_(settings),
      experiment_(experiment),
      plan_(plan),
      layout_(std::move(layout)),
      map_(layout_, settings.servers, settings.chunk_bytes),
      observer_(std::move(observer)),
      partition_metrics_(plan.settings().partitions) {
  for (int i = map_.FirstChunk(settings_.index); i < map_.FirstChunk(settings_.index + 1); ++i) {
    ChunkState state;
    state.chunk = map_.chunks()[i];
    state.arrived.resize(plan_.settings().partitions);
    chunks_.push_back(std::move(state));
  }
}

Status Shard::MakeRules() {
  const PlanSettings& plan = plan_.settings();
  KUMO_ASSIGN_OR_RETURN(gradient_rule_, MakeGradientRule(experiment_.optimiser));
  KUMO_ASSIGN_OR_RETURN(block_rule_,
                        MakeBlockRule(experiment_.block, plan.partitions,
                                      int64_t{plan.partitions} * plan.minibatch * plan.block));
  average_rule_ = MakeAverageRule();
  KUMO_ASSIGN_OR_RETURN(Schedule schedule,
                        Schedule::Make(experiment_.schedule, plan.train_samples, plan.epochs));
  schedule_ = schedule;
  KUMO_ASSIGN_OR_RETURN(push_codecs_, PushCodecs::Make(experiment_));
  if (experiment_.sync.pull_codec != "fp32") {
    KUMO_ASSIGN_OR_RETURN(pull_codec_, FindCodec(experiment_.sync.pull_codec));
  }
  return OkStatus();
}

const std::shared_ptr<const Rule>& Shard::RuleFor(const RoundPlan& round, Segment segment) const {
  if (segment == Segment::kStatistics) return average_rule_;
  return round.mode == SyncMode::kGradient ? gradient_rule_ : block_rule_;
}

Status Shard::Restore(const ShardSnapshot& snapshot) {
  const int64_t version = snapshot.version;
  if (version < 0 || version > plan_.rounds()) {
    return DataLoss("version " + std::to_string(version) + " is not one of this job's");
  }
  for (ChunkState& state : chunks_) {
    KUMO_RETURN_IF_ERROR(RestoreChunk(snapshot, &state));
  }
  for (ChunkState& state : chunks_) {
    state.version = version - 1;
    ServerActions none;  // nobody has pulled yet
    ReachVersion(&state, &none);
  }
  return OkStatus();
}

Status Shard::RestoreChunk(const ShardSnapshot& snapshot, ChunkState* state) {
  const Range range = state->chunk.range;
  int64_t start_numbers = 0;
  state->start = MakeArray(range.size());
  for (const StateArray& array : snapshot.arrays) {
    FloatArray* target = nullptr;
    switch (array.kind) {
      case StateKind::kStart:
        start_numbers += CopyOverlap(array, range, state->start.get());
        continue;
      case StateKind::kWeights:
        target = &state->weights;
        break;
      case StateKind::kRuleSlot:
        if (!Overlaps(array, range)) continue;
        if (array.slot < 0 || array.slot >= Optimiser::kMaxSlots) continue;
        if (static_cast<int>(state->slots.size()) <= array.slot)
          state->slots.resize(array.slot + 1);
        target = &state->slots[array.slot];
        break;
      case StateKind::kPartitionState:
        if (!Overlaps(array, range)) continue;
        target = &state->states[{array.partition, array.slot, snapshot.version}];
        break;
    }
    if (!Overlaps(array, range)) continue;
    if (!*target) *target = MakeArray(range.size());
    CopyOverlap(array, range, target->get());
  }
  if (start_numbers != range.size()) {
    return DataLoss("the checkpoint has " + std::to_string(start_numbers) + " of the " +
                    std::to_string(range.size()) + " weights of chunk " +
                    std::to_string(state->chunk.index));
  }
  if (!state->weights) state->weights = state->start;
  for (FloatArray& slot : state->slots) {
    if (!slot) slot = MakeArray(range.size());
  }
  return OkStatus();
}

Status Shard::OnMessage(const PeerName& from, const Message& message, ServerActions* actions) {
  switch (message.header.type()) {
    case wire::INITIALISE:
      return OnInitialise(from, message, actions);
    case wire::PUSH:
      return OnPush(from, message, actions);
    case wire::PULL:
      return OnPull(from, message, actions);
    case wire::PUT_STATE:
      return OnPutState(from, message, actions);
    case wire::GET_STATE:
      return OnGetState(from, message, actions);
    default:
      return InvalidArgument("a shard takes no message of type " +
                             std::to_string(message.header.type()));
  }
}

Result<Shard::ChunkState*> Shard::FindChunk(const wire::Header& header) {
  const int64_t local = int64_t{header.chunk()} - map_.FirstChunk(settings_.index);
  if (local < 0 || local >= static_cast<int64_t>(chunks_.size())) {
    return InvalidArgument("chunk " + std::to_string(header.chunk()) + " is not on server " +
                           std::to_string(settings_.index));
  }
  return &chunks_[local];
}

Status Shard::OnInitialise(const PeerName& from, const Message& message, ServerActions* actions) {
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(message.header));
  const auto bytes = message.payload.bytes;
  if (bytes.size() != state->chunk.range.size() * sizeof(float)) {
    return InvalidArgument("initial weights of chunk " + std::to_string(message.header.chunk()) +
                           " have " + std::to_string(bytes.size()) + " bytes");
  }
  KUMO_RETURN_IF_ERROR(push_codecs_.exact().Check(bytes, state->chunk.range.size()));
  Acknowledge(from, message.header, actions);
  if (state->version >= 0) return OkStatus();
  state->start = state->weights = CopyFloats(bytes);
  ReachVersion(state, actions);
  return OkStatus();
}

Status Shard::CheckContribution(const ChunkState& state, const Message& message,
                                ArrivedContribution* contribution) const {
  const wire::Header& header = message.header;
  const RoundPlan round = plan_.Round(state.version);
  const int64_t samples = plan_.PartitionSamples(round, header.partition()).size();
  if (header.samples() != samples) {
    return InvalidArgument(Where(header) + ": " + std::to_string(header.samples()) +
                           " samples instead of " + std::to_string(samples));
  }
  contribution->samples = samples;
  if (samples == 0) return OkStatus();
  const Codec& codec = push_codecs_.For(round, state.chunk.segment);
  if (header.codec() != static_cast<uint32_t>(codec.id())) {
    return InvalidArgument(Where(header) + ": codec " + std::to_string(header.codec()) +
                           " instead of " + std::string(codec.name()));
  }
  const size_t numbers = state.chunk.range.size();
  if (message.payload.bytes.size() != codec.EncodedBytes(numbers)) {
    return InvalidArgument(Where(header) + ": " + std::to_string(message.payload.bytes.size()) +
                           " bytes instead of " + std::to_string(codec.EncodedBytes(numbers)));
  }
  contribution->codec = &codec;
  contribution->payload = message.payload;
  return codec.Check(message.payload.bytes, numbers).WithContext(Where(header));
}

Status Shard::OnPush(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(header));
  if (header.partition() < 0 || header.partition() >= plan_.settings().partitions) {
    return InvalidArgument(Where(header) + ": no such partition");
  }
  if (header.round() > state->version || header.round() < 0 || header.round() >= plan_.rounds()) {
    return Aborted(Where(header) + ": the open round is " + std::to_string(state->version));
  }
  auto& slot = state->arrived[header.partition()];
  const bool repeated =
      header.round() < state->version || slot.has_value() || header.partition() < state->added;
  if (!repeated) {
    ArrivedContribution contribution;
    KUMO_RETURN_IF_ERROR(CheckContribution(*state, message, &contribution));
    slot = std::move(contribution);
    state->save |= header.save();
    if (state->chunk.index == 0) partition_metrics_[header.partition()] = header.metrics();
  }
  Acknowledge(from, header, actions);
  if (!repeated) Advance(state, actions);
  return OkStatus();
}

// Early contributions are added to the running sum only when several are there: most rounds then
// are one pass over memory, and what waits stays bounded.
void Shard::Advance(ChunkState* state, ServerActions* actions) {
  constexpr int kEagerContributions = 4;
  if (state->computing) return;
  const int partitions = plan_.settings().partitions;
  int ready = 0;
  while (state->added + ready < partitions && state->arrived[state->added + ready]) ++ready;
  if (ready == 0) return;
  if (state->added + ready < partitions && ready < kEagerContributions) return;
  state->computing = true;
  actions->push_back(ComputeAction{MakeWork(state, ready)});
}

std::shared_ptr<ChunkWork> Shard::MakeWork(ChunkState* state, int ready) {
  const int partitions = plan_.settings().partitions;
  const RoundPlan round = plan_.Round(state->version);
  auto work = std::make_shared<ChunkWork>();
  work->generation = settings_.generation;
  work->chunk = state->chunk.index;
  work->round = state->version;
  work->numbers = state->chunk.range.size();
  for (int i = 0; i < ready; ++i) {
    auto& arrived = state->arrived[state->added + i];
    if (arrived->samples > 0) work->contributions.push_back(std::move(*arrived));
    arrived.reset();
  }
  const bool closes = state->added + ready == partitions;
  work->sum_holds_numbers = state->added > 0;
  if (!closes && !state->sum) state->sum = MakeArray(work->numbers);
  work->sum = !closes || state->added > 0 ? state->sum : nullptr;
  state->added += ready;
  work->info.samples = round.samples.size();
  if (!closes) return work;

  work->rule = RuleFor(round, state->chunk.segment);
  const Rule& rule = *work->rule;
  work->info.learning_rate = schedule_->RateAt(round.first_sample);
  work->info.weight_decay =
      state->chunk.segment == Segment::kDecayed ? experiment_.optimiser.weight_decay : 0.0f;
  work->info.step = round.step;
  work->info.partitions = partitions;
  // A rule's state begins with its first round.
  if (round.step == 1) state->slots.clear();
  while (static_cast<int>(state->slots.size()) < rule.slots()) {
    state->slots.push_back(MakeArray(work->numbers));
  }
  work->slots = state->slots;
  work->start = state->start;
  work->weights = state->weights;
  const bool one_array = state->previous_weights == state->previous_start;
  work->next_start = Recycle(state->previous_start, one_array ? 2 : 1, work->numbers);
  if (!rule.keeps_weights_apart()) {
    work->next_weights = work->next_start;
  } else if (one_array) {
    work->next_weights = MakeArray(work->numbers);
  } else {
    work->next_weights = Recycle(state->previous_weights, 1, work->numbers);
  }
  // Every partition has gone on from that version: nobody has a use for it, and from now on the
  // work writes there.
  state->previous_start.reset();
  state->previous_weights.reset();
  state->previous_coded_start.reset();
  work->pull_codec = state->chunk.segment == Segment::kStatistics ? nullptr : pull_codec_;
  work->copy_slots = state->save;
  work->stream = bytes() > static_cast<int64_t>(kStreamBytes);
  return work;
}

void Shard::OnComputed(const ChunkWork& work, ServerActions* actions) {
  ChunkState* state = &chunks_[work.chunk - map_.FirstChunk(settings_.index)];
  state->computing = false;
  if (!work.closes()) {
    Advance(state, actions);
    return;
  }
  state->previous_start = state->start;
  state->previous_weights = state->weights;
  state->previous_coded_start = state->coded_start;
  state->start = work.next_start;
  state->weights = work.next_weights;
  state->coded_start = work.coded_start;
  ReachVersion(state, actions);
  if (work.copy_slots) {
    SnapChunk(*state, work.slot_copies);
    if (SnapshotIsComplete()) HandOutSnapshot(actions);
  }
}

void Shard::ReachVersion(ChunkState* state, ServerActions* actions) {
  ++state->version;
  state->added = 0;
  state->save = false;
  if (pull_codec_ && !state->coded_start && state->chunk.segment != Segment::kStatistics) {
    state->coded_start = EncodeStart(*pull_codec_, *state->start);
  }
  // A snapshot of an older version that still waits for a state waits for a worker that is gone;
  // and once its round has closed nobody asks for a state any more.
  if (snapshot_ && snapshot_->version < state->version) HandOutSnapshot(actions);
  std::erase_if(state->states,
                [&](const auto& entry) { return entry.first.version < state->version; });

  if (state->chunk.index == 0) {
    wire::Metrics sum;
    for (wire::Metrics& metrics : partition_metrics_) {
      sum.set_samples(sum.samples() + metrics.samples());
      sum.set_loss_sum(sum.loss_sum() + metrics.loss_sum());
      sum.set_correct(sum.correct() + metrics.correct());
      metrics.Clear();
    }
    directives_.erase(state->version - 2);
    directives_[state->version] = observer_(state->version, sum);
  }
  for (const ParkedPull& pull : std::exchange(state->parked, {})) {
    AnswerPull(*state, pull, state->version, actions);
  }
}

Status Shard::OnPull(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(header));
  const int64_t version = header.round();
  if (header.vector() != wire::START && header.vector() != wire::WEIGHTS) {
    return InvalidArgument("pull of an unknown vector " + std::to_string(header.vector()));
  }
  if (version < 0 || version > state->version + 1 || version > plan_.rounds()) {
    return Aborted("pull of version " + std::to_string(version) + " of chunk " +
                   std::to_string(header.chunk()) + ", which is at version " +
                   std::to_string(state->version));
  }
  const ParkedPull pull{from, header.vector()};
  if (version == state->version + 1) {
    const auto same = [&](const ParkedPull& p) {
      return p.peer == pull.peer && p.vector == pull.vector;
    };
    if (std::none_of(state->parked.begin(), state->parked.end(), same)) {
      state->parked.push_back(pull);
    }
    return OkStatus();
  }
  AnswerPull(*state, pull, version, actions);
  return OkStatus();
}

void Shard::AnswerPull(const ChunkState& state, const ParkedPull& pull, int64_t version,
                       ServerActions* actions) const {
  const bool current = version == state.version;
  const FloatArray& start = current ? state.start : state.previous_start;
  const FloatArray& weights = current ? state.weights : state.previous_weights;
  const auto& coded = current ? state.coded_start : state.previous_coded_start;

  SendAction reply;
  reply.to = pull.peer;
  wire::Header& header = reply.message.header;
  header.set_chunk(state.chunk.index);
  header.set_vector(pull.vector);
  if (version < state.version - 1 || !start) {
    header.set_type(wire::GONE);
    header.set_round(state.previous_start ? state.version - 1 : state.version);
    actions->push_back(std::move(reply));
    return;
  }
  header.set_type(wire::CHUNK);
  header.set_round(version);
  if (pull.vector == wire::START && coded) {
    header.set_codec(static_cast<uint32_t>(pull_codec_->id()));
    reply.message.payload = {coded, std::as_const(*coded).span()};
  } else {
    header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
    reply.message.payload = BytesOf(pull.vector == wire::START ? start : weights);
  }
  if (const auto directive = directives_.find(version);
      state.chunk.index == 0 && directive != directives_.end()) {
    header.set_save(directive->second.save);
    header.set_stop(directive->second.stop);
    header.set_move(directive->second.move);
  }
  actions->push_back(std::move(reply));
}

bool Shard::CarriesState(const Chunk& chunk) const {
  return settings_.state_slots > 0 && chunk.segment != Segment::kStatistics;
}

Status Shard::OnPutState(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(header));
  const auto bytes = message.payload.bytes;
  const bool fits = bytes.empty() || bytes.size() == state->chunk.range.size() * sizeof(float);
  if (!CarriesState(state->chunk) || header.partition() < 0 ||
      header.partition() >= plan_.settings().partitions || header.slot() < 0 ||
      header.slot() >= settings_.state_slots || !fits) {
    return InvalidArgument("state of " + Where(header) + ", slot " + std::to_string(header.slot()) +
                           ", with " + std::to_string(bytes.size()) + " bytes");
  }
  if (!bytes.empty()) {
    KUMO_RETURN_IF_ERROR(
        push_codecs_.exact().Check(bytes, state->chunk.range.size()).WithContext(Where(header)));
  }
  Acknowledge(from, header, actions);
  // Older than the open round: a copy that took its time. It may be one version ahead of a chunk
  // that has not closed its round yet.
  if (header.round() < state->version || header.round() > state->version + 1) return OkStatus();
  state->states[{header.partition(), header.slot(), header.round()}] =
      bytes.empty() ? nullptr : CopyFloats(bytes);
  std::erase_if(state->parked_gets, [&](const ParkedGet& get) {
    const bool this_one = get.asked.partition() == header.partition() &&
                          get.asked.slot() == header.slot() && get.asked.round() == header.round();
    if (this_one) AnswerGet(*state, get.peer, get.asked, actions);
    return this_one;
  });
  if (SnapshotIsComplete()) HandOutSnapshot(actions);
  return OkStatus();
}

Status Shard::OnGetState(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& asked = message.header;
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(asked));
  if (!CarriesState(state->chunk) || asked.partition() < 0 ||
      asked.partition() >= plan_.settings().partitions || asked.slot() < 0 ||
      asked.slot() >= settings_.state_slots) {
    return InvalidArgument("no state of " + Where(asked) + ", slot " +
                           std::to_string(asked.slot()));
  }
  const StateKey key{asked.partition(), asked.slot(), asked.round()};
  const bool known = state->states.contains(key);
  if (!known && asked.wait() && asked.round() >= state->version &&
      asked.round() <= state->version + 1) {
    std::erase_if(state->parked_gets, [&](const ParkedGet& get) {
      return get.asked.partition() == asked.partition() && get.asked.slot() == asked.slot();
    });
    state->parked_gets.push_back({from, asked});
    return OkStatus();
  }
  if (!known && asked.round() == state->version) {
    // Lost with the worker that carried it: the partition goes on without, and no snapshot waits.
    state->states[key] = nullptr;
    if (SnapshotIsComplete()) HandOutSnapshot(actions);
  }
  AnswerGet(*state, from, asked, actions);
  return OkStatus();
}

void Shard::AnswerGet(const ChunkState& state, const PeerName& to, const wire::Header& asked,
                      ServerActions* actions) const {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::STATE);
  header.set_round(asked.round());
  header.set_partition(asked.partition());
  header.set_chunk(asked.chunk());
  header.set_slot(asked.slot());
  header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
  const auto found = state.states.find({asked.partition(), asked.slot(), asked.round()});
  if (found != state.states.end() && found->second) reply.message.payload = BytesOf(found->second);
  actions->push_back(std::move(reply));
}

Status Shard::SaveNow(int64_t version, bool partial, ServerActions* actions) {
  for (const ChunkState& state : chunks_) {
    if (state.version == version && !state.computing) continue;
    return Aborted("chunk " + std::to_string(state.chunk.index) + " is " +
                   (state.computing ? "being computed" : "at version ") +
                   (state.computing ? "" : std::to_string(state.version)));
  }
  if (chunks_.empty()) return OkStatus();
  snapshot_.reset();
  for (const ChunkState& state : chunks_) {
    std::vector<FloatArray> slots;
    for (const FloatArray& slot : state.slots) {
      slots.push_back(CopyFloats(std::as_bytes(std::as_const(*slot).span())));
    }
    SnapChunk(state, slots);
  }
  // If not, it is handed out as soon as the last state comes.
  if (partial || SnapshotIsComplete()) HandOutSnapshot(actions);
  return OkStatus();
}

void Shard::SnapChunk(const ChunkState& state, std::span<const FloatArray> slots) {
  if (!snapshot_) {
    snapshot_ = ShardSnapshot{state.version, {}};
    snapped_chunks_ = 0;
  }
  const auto add = [&](StateKind kind, int slot, const FloatArray& array) {
    snapshot_->arrays.push_back(
        {kind, 0, slot, state.chunk.range.begin, array, std::as_const(*array).span()});
  };
  add(StateKind::kStart, 0, state.start);
  if (state.weights != state.start) add(StateKind::kWeights, 0, state.weights);
  for (size_t i = 0; i < slots.size(); ++i) {
    add(StateKind::kRuleSlot, static_cast<int>(i), slots[i]);
  }
  ++snapped_chunks_;
}

bool Shard::SnapshotIsComplete() const {
  if (!snapshot_ || snapped_chunks_ < static_cast<int>(chunks_.size())) return false;
  const size_t expected = size_t(plan_.settings().partitions) * settings_.state_slots;
  for (const ChunkState& state : chunks_) {
    if (!CarriesState(state.chunk)) continue;
    const auto known =
        std::count_if(state.states.begin(), state.states.end(),
                      [&](const auto& entry) { return entry.first.version == snapshot_->version; });
    if (static_cast<size_t>(known) < expected) return false;
  }
  return true;
}

void Shard::HandOutSnapshot(ServerActions* actions) {
  for (const ChunkState& state : chunks_) {
    for (const auto& [key, numbers] : state.states) {
      if (key.version != snapshot_->version || !numbers) continue;
      snapshot_->arrays.push_back({StateKind::kPartitionState, key.partition, key.slot,
                                   state.chunk.range.begin, numbers,
                                   std::as_const(*numbers).span()});
    }
  }
  actions->push_back(SaveAction{{}, *std::move(snapshot_)});
  snapshot_.reset();
}

void Shard::Forget(const PeerName& peer) {
  for (ChunkState& state : chunks_) {
    std::erase_if(state.parked, [&](const ParkedPull& pull) { return pull.peer == peer; });
    std::erase_if(state.parked_gets, [&](const ParkedGet& get) { return get.peer == peer; });
  }
}

int64_t Shard::version() const {
  int64_t oldest = plan_.rounds();
  for (const ChunkState& state : chunks_) oldest = std::min(oldest, state.version);
  return oldest;
}

std::vector<int> Shard::Missing() const {
  std::vector<int> missing;
  const int64_t oldest = version();
  if (oldest < 0 || oldest >= plan_.rounds()) return missing;
  for (const ChunkState& state : chunks_) {
    if (state.version != oldest || state.computing) continue;
    for (int p = state.added; p < plan_.settings().partitions; ++p) {
      if (!state.arrived[p]) missing.push_back(p);
    }
    if (!missing.empty()) break;
  }
  return missing;
}

std::string Shard::WaitsFor() const {
  if (version() < 0) return "the initial weights";
  std::string missing;
  for (const int p : Missing()) missing += (missing.empty() ? "" : ", ") + std::to_string(p);
  if (missing.empty()) return "";
  return "partition " + missing + " of round " + std::to_string(version());
}

void Shard::Acknowledge(const PeerName& to, const wire::Header& header,
                        ServerActions* actions) const {
  SendAction reply{to, {}};
  wire::Header& ack = reply.message.header;
  ack.set_type(wire::ACK);
  ack.set_acknowledges(header.type());
  ack.set_round(header.round());
  ack.set_partition(header.partition());
  ack.set_chunk(header.chunk());
  ack.set_slot(header.slot());
  actions->push_back(std::move(reply));
}

}  // namespace kumo
