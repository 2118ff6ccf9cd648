// A shard and checkpoints: what it begins with, what partitions carry, and the snapshots that it
// hands out.
#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

namespace kumo {
namespace {

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

}  // namespace

Status Shard::Restore(const ShardSnapshot& snapshot, ServerActions* actions) {
  const int64_t version = snapshot.version;
  if (version < 0 || version > plan_.rounds()) {
    return DataLoss("version " + std::to_string(version) + " is not one of this job's");
  }
  for (ChunkState& state : chunks_) {
    KUMO_RETURN_IF_ERROR(RestoreChunk(snapshot, &state));
    KUMO_ASSIGN_OR_RETURN(state.coded_start, CodeStart(state.chunk, version, state.start));
  }
  for (ChunkState& state : chunks_) {
    state.version = version - 1;
    if (state.chunk.index == 0) Observe(version);
    ServerActions none;  // nobody has pulled yet
    ReachVersion(&state, &none);
    ReplicateCurrent(state, actions);
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

bool Shard::CarriesState(const Chunk& chunk) const {
  return settings_.carried_arrays > 0 && chunk.segment != Segment::kStatistics;
}

Status Shard::OnPutState(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(ChunkState * state, FindChunk(header));
  const auto bytes = message.payload.bytes;
  const bool fits = bytes.empty() || bytes.size() == state->chunk.range.size() * sizeof(float);
  if (!CarriesState(state->chunk) || header.partition() < 0 ||
      header.partition() >= plan_.settings().partitions || header.slot() < 0 ||
      header.slot() >= settings_.carried_arrays || !fits) {
    return InvalidArgument("state of " + Where(header) + ", array " +
                           std::to_string(header.slot()) + ", with " +
                           std::to_string(bytes.size()) + " bytes");
  }
  if (!bytes.empty()) {
    KUMO_RETURN_IF_ERROR(
        push_codecs_.exact().Check(bytes, state->chunk.range.size()).WithContext(Where(header)));
  }
  // Older than the open round: a copy that took its time. It may be one version ahead of a chunk
  // that has not closed its round yet.
  const bool counts = header.round() >= state->version && header.round() <= state->version + 1;
  actions->push_back(Acknowledgement(from, header, replicator_ && counts));
  if (!counts) return OkStatus();
  const StateKey key{header.partition(), header.slot(), header.round()};
  state->states[key] = bytes.empty() ? nullptr : CopyFloats(bytes);
  if (replicator_) state->state_givers.emplace(key, from);
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
      asked.slot() >= settings_.carried_arrays) {
    return InvalidArgument("no state of " + Where(asked) + ", array " +
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
    // The state was lost with the worker that carried it: the partition goes on without, and no
    // snapshot waits for it.
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

Status Shard::SaveNow(int64_t version, int attempt, bool partial, ServerActions* actions) {
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
    for (const FloatArray& slot : state.slots) slots.push_back(CopyFloats(BytesOf(slot).bytes));
    SnapChunk(state, slots);
  }
  snapshot_attempt_ = attempt;
  // A snapshot that is not complete is handed out as soon as the last state comes.
  if (partial || SnapshotIsComplete()) HandOutSnapshot(actions);
  return OkStatus();
}

void Shard::SnapChunk(const ChunkState& state, std::span<const FloatArray> slots) {
  if (!snapshot_) {
    snapshot_ = ShardSnapshot{state.version, {}};
    snapped_chunks_ = snapshot_attempt_ = 0;
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
  const size_t expected = size_t(plan_.settings().partitions) * settings_.carried_arrays;
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
      snapshot_->arrays.push_back({StateKind::kPartitionState, key.partition, key.array,
                                   state.chunk.range.begin, numbers,
                                   std::as_const(*numbers).span()});
    }
  }
  actions->push_back(SaveAction{{}, snapshot_attempt_, *std::move(snapshot_)});
  snapshot_.reset();
}

}  // namespace kumo
