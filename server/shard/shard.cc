#include "server/shard/shard.h"

#include <algorithm>
#include <atomic>

#include <glog/logging.h>

#include "server/rules/aggregate.h"

namespace kumo {
namespace {

// An array for a chunk's next version: `old` again where the chunk's own `holders` names for it are
// the only ones. Others would be messages on their way and snapshots being written.
FloatArray Recycle(const FloatArray& old, long holders, size_t numbers) {
  if (!old || old.use_count() != holders) return MakeArray(numbers);
  // use_count() is a relaxed read: see all that the last other holder did.
  std::atomic_thread_fence(std::memory_order_acquire);
  return old;
}

}  // namespace

std::string Shard::Where(const wire::Header& header) {
  return "partition " + std::to_string(header.partition()) + ", round " +
         std::to_string(header.round()) + ", chunk " + std::to_string(header.chunk());
}

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
  if (settings_.replicate) replicator_.emplace(ReplicaHolder(settings_.index, settings_.servers));
}

std::vector<Chunk> Shard::chunks() const {
  std::vector<Chunk> chunks;
  for (const ChunkState& state : chunks_) chunks.push_back(state.chunk);
  return chunks;
}

Range Shard::range() const {
  if (chunks_.empty()) return {};
  return {chunks_.front().chunk.range.begin, chunks_.back().chunk.range.end};
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
  const bool repeated = state->version >= 0;
  if (!repeated) {
    const FloatArray start = CopyFloats(bytes);
    KUMO_ASSIGN_OR_RETURN(state->coded_start, CodeStart(state->chunk, 0, start));
    state->start = state->weights = start;
  }
  actions->push_back(Acknowledgement(from, message.header));
  if (repeated) return OkStatus();
  if (state->chunk.index == 0) Observe(0);
  ReachVersion(state, actions);
  // Initial weights that are lost are made again: nobody waits for the next server to have them.
  ReplicateCurrent(*state, actions);
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
  auto& arrived = state->arrived[header.partition()];
  const bool repeated =
      header.round() < state->version || arrived.has_value() || header.partition() < state->added;
  if (!repeated) {
    ArrivedContribution contribution;
    KUMO_RETURN_IF_ERROR(CheckContribution(*state, message, &contribution));
    arrived = std::move(contribution);
    state->save |= header.save();
    if (state->chunk.index == 0) partition_metrics_[header.partition()] = header.metrics();
  }
  const bool held = replicator_ && header.round() == state->version;
  if (held) state->contributors.emplace(header.partition(), from);
  actions->push_back(Acknowledgement(from, header, held));
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
  work->pull_codec = PullCodec(state->chunk.segment);
  work->copy_slots = state->save || replicator_;
  work->stream = bytes() > static_cast<int64_t>(kStreamBytes);
  return work;
}

const Codec* Shard::PullCodec(Segment segment) const {
  return segment == Segment::kStatistics ? nullptr : pull_codec_;
}

Result<CodedBytes> Shard::CodeStart(const Chunk& chunk, int64_t version,
                                    const FloatArray& start) const {
  const Codec* const codec = PullCodec(chunk.segment);
  if (codec == nullptr) return CodedBytes();
  const CodedStart coded = EncodeStart(*codec, *start);
  KUMO_RETURN_IF_ERROR(CheckFits(chunk, version, coded));
  return coded.bytes;
}

Status Shard::CheckFits(const Chunk& chunk, int64_t version, const CodedStart& coded) const {
  if (coded.first_bad < 0) return OkStatus();
  const int tensor = layout_.TensorAt(chunk.range.begin + coded.first_bad);
  return FailedPrecondition("the weights after " + std::to_string(version) + " rounds: tensor " +
                            (tensor < 0 ? "?" : layout_.tensors()[tensor].name) + " has become " +
                            pull_codec_->DescribeMisfit() +
                            " (sync.pull_codec); a lower schedule.learning_rate usually helps");
}

Status Shard::OnComputed(const ChunkWork& work, ServerActions* actions) {
  ChunkState* state = &chunks_[work.chunk - map_.FirstChunk(settings_.index)];
  if (!work.closes()) {
    state->computing = false;
    Advance(state, actions);
    return OkStatus();
  }
  KUMO_RETURN_IF_ERROR(CheckFits(state->chunk, state->version + 1, work.coded_start));
  state->next = {work.next_start, work.next_weights, work.coded_start.bytes, work.slot_copies};
  if (work.chunk == 0) Observe(state->version + 1);
  if (replicator_) {
    ReplicateNext(*state, actions);
  } else {
    Publish(state, actions);
  }
  return OkStatus();
}

// The next version is everybody's.
void Shard::Publish(ChunkState* state, ServerActions* actions) {
  NextVersion next = std::exchange(state->next, {});
  const bool save = state->save;
  state->computing = false;
  state->previous_start = std::exchange(state->start, std::move(next.start));
  state->previous_weights = std::exchange(state->weights, std::move(next.weights));
  state->previous_coded_start = std::exchange(state->coded_start, std::move(next.coded_start));
  ReachVersion(state, actions);
  if (!save) return;
  SnapChunk(*state, next.slot_copies);
  if (SnapshotIsComplete()) HandOutSnapshot(actions);
}

// Chunk 0's next version is made.
void Shard::Observe(int64_t version) {
  wire::Metrics sum;
  for (wire::Metrics& metrics : partition_metrics_) {
    sum.set_samples(sum.samples() + metrics.samples());
    sum.set_loss_sum(sum.loss_sum() + metrics.loss_sum());
    sum.set_correct(sum.correct() + metrics.correct());
    metrics.Clear();
  }
  directives_.erase(directives_.begin(), directives_.lower_bound(version - 2));
  directives_[version] = observer_(version, sum);
}

Directive Shard::DirectiveOf(int64_t version) const {
  const auto found = directives_.find(version);
  return found == directives_.end() ? Directive() : found->second;
}

void Shard::ReachVersion(ChunkState* state, ServerActions* actions) {
  AcknowledgeClosedRound(state, actions);
  ++state->version;
  state->added = 0;
  state->save = false;
  // A snapshot of an older version that still waits for a state waits for a worker that is gone;
  // and once its round has closed nobody asks for a state any more.
  if (snapshot_ && snapshot_->version < state->version) HandOutSnapshot(actions);
  std::erase_if(state->states,
                [&](const auto& entry) { return entry.first.version < state->version; });
  std::erase_if(state->parked_gets,
                [&](const ParkedGet& get) { return get.asked.round() < state->version; });
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
  if (state.chunk.index == 0) {
    const Directive said = DirectiveOf(version);
    header.set_save(said.save);
    header.set_stop(said.stop);
    header.set_move(said.move);
  }
  actions->push_back(std::move(reply));
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

}  // namespace kumo
