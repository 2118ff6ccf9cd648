// A server and its neighbours: what it keeps in memory for the one before it, and what it gets back
// from the next one when it was started again.
#include <utility>

#include <glog/logging.h>

#include "server/server_node.h"

namespace kumo {

bool ServerNode::HoldsReplica() const {
  if (!settings_.experiment.cluster.KeepsVersionsTwice() || !shard_) return false;
  const int servers = settings_.identity.servers;
  const int before = (settings_.index + servers - 1) % servers;
  const ShardMap& map = shard_->map();
  for (int i = map.FirstChunk(before); i < map.FirstChunk(before + 1); ++i) {
    if (replica_.Find(i).empty()) return false;
  }
  return true;
}

bool ServerNode::HoldsFor(const PeerName& from, int chunk) const {
  if (!settings_.experiment.cluster.KeepsVersionsTwice() || !shard_ || chunk < 0) return false;
  const auto& chunks = shard_->map().chunks();
  if (chunk >= static_cast<int>(chunks.size())) return false;
  const int owner = chunks[chunk].server;
  return from == ServerPeer(owner) &&
         ReplicaHolder(owner, settings_.identity.servers) == ServerPeer(settings_.index);
}

void ServerNode::OnFromNeighbour(const PeerName& from, const Message& message, TimeUs now,
                                 ServerActions* actions) {
  const wire::Header& header = message.header;
  if (generation_ == 0 || header.generation() != generation_) return;
  const bool holder = settings_.experiment.cluster.KeepsVersionsTwice() &&
                      from == ReplicaHolder(settings_.index, settings_.identity.servers);
  if (header.type() == wire::FETCH_REPLICA) {
    if (HoldsFor(from, header.chunk())) OnFetchReplica(from, header, actions);
  } else if (header.type() == wire::REPLICATE && HoldsFor(from, header.chunk())) {
    OnReplicate(from, message, actions);
  } else if (holder && header.type() == wire::ACK && header.acknowledges() == wire::REPLICATE) {
    if (!shard_ || !ready_) return;
    shard_->OnReplicated(header, TurnOf(now, actions).turn());
  } else if (holder && fetch_) {
    if (Status status = fetch_->OnMessage(message); !status.ok()) {
      LOG_EVERY_T(WARNING, 1) << "from " << from << ": " << status.message();
    }
    TickFetch(now, actions);
  }
}

void ServerNode::OnReplicate(const PeerName& from, const Message& message, ServerActions* actions) {
  const wire::Header& header = message.header;
  const Range range = shard_->map().chunks()[header.chunk()].range;
  if (Status status = replica_.Add(message, range.size()); !status.ok()) {
    LOG_EVERY_T(WARNING, 1) << "from " << from << ": " << status.message();
    return;
  }
  actions->push_back(Acknowledgement(from, header));
}

void ServerNode::OnFetchReplica(const PeerName& from, const wire::Header& header,
                                ServerActions* actions) {
  const auto versions = replica_.Find(header.chunk());
  for (const auto& [number, version] : versions) {
    for (const auto& [array, payload] : version->arrays) {
      SendAction send{from, {}};
      send.message.header.set_type(wire::REPLICATE);
      send.message.header.set_chunk(header.chunk());
      send.message.header.set_round(number);
      send.message.header.set_slot(array);
      send.message.header.set_arrays(static_cast<uint32_t>(version->arrays.size()));
      if (header.chunk() == 0) {
        *send.message.header.mutable_coordinator_state() = version->coordinator_state;
      }
      send.message.payload = payload;
      actions->push_back(std::move(send));
    }
  }
  SendAction reply = Acknowledgement(from, header);
  reply.message.header.set_round(versions.empty() ? -1 : versions.rbegin()->first);
  reply.message.header.set_arrays(static_cast<uint32_t>(versions.size()));
  actions->push_back(std::move(reply));
}

// A server that was started again, until it has what its former process held.
void ServerNode::TickFetch(TimeUs now, ServerActions* actions) {
  if (!fetch_) return;
  fetch_->Tick(TurnOf(now, actions).turn());
  if (!fetch_->lost() && !fetch_->complete()) return;
  lost_ = fetch_->lost();
  if (!lost_) {
    if (Status status = shard_->Adopt(fetch_->store()); !status.ok()) {
      LOG(WARNING) << status.message();
      lost_ = true;
    }
  }
  fetch_.reset();
  next_heartbeat_ = now;  // tell the coordinator
  if (lost_) return;
  ready_ = true;
  if (coordinates()) {
    const auto [version, said] = shard_->newest_directive();
    coordinator_->TakeOver(version, said, now, actions);
  }
  LOG(INFO) << "goes on from round " << Report().version() << ", as the next server has kept it";
}

}  // namespace kumo
