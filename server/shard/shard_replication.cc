// A shard whose versions are kept twice: on their way to the next server, and back from there.
#include "server/shard/shard.h"

#include <utility>

namespace kumo {

Status Shard::Adopt(const ReplicaStore& replica) {
  const auto copy = [](const ReplicaStore::Version& version, int array) {
    const auto found = version.arrays.find(array);
    return found == version.arrays.end() ? nullptr : CopyFloats(found->second.bytes);
  };
  for (ChunkState& state : chunks_) {
    const auto versions = replica.Find(state.chunk.index);
    if (versions.empty() || versions.rbegin()->first > plan_.rounds()) {
      return DataLoss("no version of chunk " + std::to_string(state.chunk.index) + " was kept");
    }
    const auto& [number, newest] = *versions.rbegin();
    const auto before = versions.find(number - 1);
    if (before != versions.end()) {
      state.previous_start = copy(*before->second, ReplicaStore::kStart);
      state.previous_weights = copy(*before->second, ReplicaStore::kWeights);
      if (!state.previous_weights) state.previous_weights = state.previous_start;
    } else if (number > 0) {
      // Another chunk may still be there, with nobody who has computed its round. Or it is where
      // the job has begun: going back to that costs no more than the round, and what partitions
      // carry there is only on the disk.
      return DataLoss("version " + std::to_string(number - 1) + " of chunk " +
                      std::to_string(state.chunk.index) + " was not kept");
    }
    state.start = copy(*newest, ReplicaStore::kStart);
    state.weights = copy(*newest, ReplicaStore::kWeights);
    if (!state.weights) state.weights = state.start;
    KUMO_ASSIGN_OR_RETURN(state.coded_start, CodeStart(state.chunk, number, state.start));
    for (int array = ReplicaStore::kFirstSlot; newest->arrays.contains(array); ++array) {
      state.slots.push_back(copy(*newest, array));
    }
    if (state.chunk.index == 0) {
      const wire::CoordinatorState& said = newest->coordinator_state;
      directives_[number] = {said.save(), said.stop_at() == number + 1,
                             said.move_at() == number + 1,
                             std::make_shared<wire::CoordinatorState>(said)};
    }
    state.version = number - 1;
    ServerActions none;  // nobody has pulled yet
    ReachVersion(&state, &none);
  }
  return OkStatus();
}

// What was brought to the round that has closed is not needed again.
void Shard::AcknowledgeClosedRound(ChunkState* state, ServerActions* actions) {
  wire::Header header;
  header.set_type(wire::PUSH);
  header.set_chunk(state->chunk.index);
  header.set_round(state->version);
  for (const auto& [partition, peer] : std::exchange(state->contributors, {})) {
    header.set_partition(partition);
    actions->push_back(Acknowledgement(peer, header));
  }
  header.set_type(wire::PUT_STATE);
  std::erase_if(state->state_givers, [&](const auto& entry) {
    const auto& [key, peer] = entry;
    if (key.version > state->version) return false;
    header.set_partition(key.partition);
    header.set_slot(key.array);
    header.set_round(key.version);
    actions->push_back(Acknowledgement(peer, header));
    return true;
  });
}

std::shared_ptr<const wire::CoordinatorState> Shard::StateAt(const ChunkState& state,
                                                             int64_t version) const {
  return state.chunk.index == 0 ? DirectiveOf(version).state : nullptr;
}

// Sends a version that is everybody's already.
void Shard::ReplicateCurrent(const ChunkState& state, ServerActions* actions) {
  if (!replicator_) return;
  std::vector<FloatArray> slots;
  for (const FloatArray& slot : state.slots) slots.push_back(CopyFloats(BytesOf(slot).bytes));
  replicator_->Send(state.chunk.index, state.version, state.start, state.weights, slots,
                    StateAt(state, state.version), actions);
}

// Sends the version that is made; when it is there, it is everybody's.
void Shard::ReplicateNext(const ChunkState& state, ServerActions* actions) {
  replicator_->Send(state.chunk.index, state.version + 1, state.next.start, state.next.weights,
                    state.next.slot_copies, StateAt(state, state.version + 1), actions);
}

void Shard::OnReplicated(const wire::Header& header, ServerActions* actions) {
  const auto found = FindChunk(header);
  if (!replicator_ || !found.ok() || !replicator_->OnAcknowledged(header)) return;
  ChunkState* const state = *found;
  // The version before is there too by then, for who has to compute the round again.
  if (state->next.start && !replicator_->IsSending(state->chunk.index, state->version) &&
      !replicator_->IsSending(state->chunk.index, state->version + 1)) {
    Publish(state, actions);
  }
  if (header.round() != state->version || !state->holder_lacks_previous) return;
  // The version before is sent after the newest one: alone it must not pass for that.
  state->holder_lacks_previous = false;
  if (!state->previous_start) return;
  replicator_->Send(state->chunk.index, state->version - 1, state->previous_start,
                    state->previous_weights, {}, nullptr, actions);
}

void Shard::ReplicateAgain(ServerActions* actions) {
  if (!replicator_) return;
  replicator_->StartOver();
  for (ChunkState& state : chunks_) {
    if (state.version < 0) continue;
    state.holder_lacks_previous = true;
    // While its round is being closed the rule's slots change; the next version follows soon.
    const bool closing = state.added == plan_.settings().partitions;
    if (state.next.start) {
      ReplicateNext(state, actions);
    } else if (!closing) {
      ReplicateCurrent(state, actions);
    }
  }
}

void Shard::Tick(TimeUs now, ServerActions* actions) {
  if (replicator_) replicator_->Tick(now, actions);
}

}  // namespace kumo
