#include "server/shard/carried_states.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "common/codec/codec.h"
#include "server/protocol/messages.h"
#include "server/shard/subject.h"

namespace kumo {

CarriedStates::CarriedStates(const Chunk& chunk, const JobPlan* plan, int arrays)
    : chunk_(chunk), plan_(plan), arrays_(chunk.trained() ? arrays : 0) {}

CarriedStates::Key CarriedStates::KeyOf(const wire::Header& header) {
  return {header.partition(), header.carried_array(), header.round()};
}

bool CarriedStates::Carries(const wire::Header& header) const {
  return header.partition() >= 0 && header.partition() < plan_->settings().partitions &&
         header.carried_array() >= 0 && header.carried_array() < arrays_;
}

Status CarriedStates::Put(const PeerName& from, const Message& message, bool leased,
                          int64_t version, bool held, StepContext* context) {
  const wire::Header& header = message.header;
  const auto bytes = message.payload.bytes;
  const bool fits = bytes.empty() || bytes.size() == chunk_.range.size() * sizeof(float);
  if (!Carries(header) || !fits) {
    return InvalidArgument("state of " + SubjectOf(header) + ", array " +
                           std::to_string(header.carried_array()) + ", with " +
                           std::to_string(bytes.size()) + " bytes");
  }
  if (!bytes.empty()) {
    KUMO_RETURN_IF_ERROR(CheckFloats(bytes, chunk_.range.size()).WithContext(SubjectOf(header)));
  }
  // A state of an older version is a late copy.
  const bool counts = MayCome(header.round(), version);
  if (counts && !leased) return NotLeased(header);
  context->Do(Acknowledgement(from, header, held && counts));
  if (!counts) return OkStatus();
  const Key key = KeyOf(header);
  states_[key] = bytes.empty() ? nullptr : CopyFloats(bytes);
  if (held) keepers_[{key, from}] = header.request();
  std::erase_if(parked_, [&](const ParkedGet& get) {
    if (KeyOf(get.asked) != key) return false;
    Answer(get.peer, get.asked, context);
    return true;
  });
  return OkStatus();
}

// Three cases. The state is here: answer. A live worker is about to put it (asked.wait): park; a
// newer request for the same array replaces the parked one, since the partition has moved on.
// Otherwise the state is lost with its worker; noting that (null) completes a snapshot that waits
// for it.
Result<bool> CarriedStates::Asks(const PeerName& from, const wire::Header& asked, int64_t version) {
  if (!Carries(asked)) {
    return InvalidArgument("no state of " + SubjectOf(asked) + ", array " +
                           std::to_string(asked.carried_array()));
  }
  const Key key = KeyOf(asked);
  if (states_.contains(key)) return true;
  if (asked.wait() && MayCome(asked.round(), version)) {
    std::erase_if(parked_, [&](const ParkedGet& get) {
      return get.asked.partition() == asked.partition() &&
             get.asked.carried_array() == asked.carried_array();
    });
    parked_.push_back({from, asked});
    return false;
  }
  if (asked.round() == version) states_[key] = nullptr;
  return true;
}

void CarriedStates::Answer(const PeerName& to, const wire::Header& asked,
                           StepContext* context) const {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::STATE);
  header.set_round(asked.round());
  header.set_partition(asked.partition());
  header.set_chunk(asked.chunk());
  header.set_carried_array(asked.carried_array());
  header.set_request(asked.request());
  header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
  const auto found = states_.find(KeyOf(asked));
  if (found != states_.end() && found->second) reply.message.payload = BytesOf(found->second);
  context->Do(std::move(reply));
}

void CarriedStates::Acknowledge(int64_t version, StepContext* context) {
  wire::Header header;
  header.set_type(wire::PUT_STATE);
  header.set_chunk(chunk_.index);
  std::erase_if(keepers_, [&](const auto& entry) {
    const auto& [key, peer] = entry.first;
    if (key.version > version) return false;
    header.set_request(entry.second);
    header.set_partition(key.partition);
    header.set_round(key.version);
    context->Do(Acknowledgement(peer, header));
    return true;
  });
}

void CarriedStates::DropBefore(int64_t version) {
  std::erase_if(states_, [&](const auto& entry) { return entry.first.version < version; });
  std::erase_if(parked_, [&](const ParkedGet& get) { return get.asked.round() < version; });
}

void CarriedStates::Forget(const PeerName& peer) {
  std::erase_if(parked_, [&](const ParkedGet& get) { return get.peer == peer; });
}

bool CarriedStates::IsComplete(int64_t version) const {
  const auto known = std::count_if(states_.begin(), states_.end(), [&](const auto& entry) {
    return entry.first.version == version;
  });
  return known >= int64_t{plan_->settings().partitions} * arrays_;
}

void CarriedStates::AddTo(ShardSnapshot* snapshot) const {
  for (const auto& [key, numbers] : states_) {
    if (key.version != snapshot->version || !numbers) continue;
    snapshot->arrays.push_back({StateKind::kPartitionState, key.partition, key.array,
                                chunk_.range.begin, numbers, std::as_const(*numbers).span()});
  }
}

// A snapshot of a job whose chunks were cut otherwise may have a part of a state, if another part
// was lost with its worker. Zeros in its place would be taken for the state: it is lost as a whole.
void CarriedStates::Restore(const ShardSnapshot& snapshot) {
  std::map<Key, int64_t> restored;  // elements
  for (const StateArray& array : snapshot.arrays) {
    if (array.kind != StateKind::kPartitionState || !Overlaps(array, chunk_.range)) continue;
    const Key key{array.partition, array.slot, snapshot.version};
    FloatArray& state = states_[key];
    if (!state) state = MakeArray(chunk_.range.size());
    restored[key] += CopyOverlap(array, chunk_.range, state->span());
  }
  for (const auto& [key, elements] : restored) {
    if (elements < chunk_.range.size()) states_.erase(key);
  }
}

}  // namespace kumo
