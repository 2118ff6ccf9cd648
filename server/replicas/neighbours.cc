#include "server/replicas/neighbours.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "server/protocol/messages.h"
#include "server/replicas/replicator.h"

namespace kumo {

bool IsBetweenNeighbours(const wire::Header& header) {
  const wire::Type type = header.type() == wire::ACK ? header.acknowledges() : header.type();
  return type == wire::REPLICATE || type == wire::FETCH_REPLICA;
}

Neighbours::Neighbours(int index, int servers, int window)
    : index_(index), servers_(servers), window_(window), holder_(ReplicaHolder(index, servers)) {}

void Neighbours::Clear() {
  store_.Clear();
  fetch_.reset();
}

bool Neighbours::HoldsReplica(const ShardMap& map) const {
  const int before = (index_ + servers_ - 1) % servers_;
  for (int i = map.FirstChunk(before); i < map.FirstChunk(before + 1); ++i) {
    if (store_.Find(i).empty()) return false;
  }
  return true;
}

bool Neighbours::HoldsFor(const PeerName& from, int chunk, const ShardMap& map) const {
  if (chunk < 0 || chunk >= static_cast<int>(map.chunks().size())) return false;
  const int owner = map.chunks()[chunk].server;
  return from == ServerPeer(owner) && ReplicaHolder(owner, servers_) == ServerPeer(index_);
}

void Neighbours::OnMessage(const PeerName& from, const Message& message, const ShardMap& map,
                           const JobPlan& plan, StepContext* context) {
  const wire::Header& header = message.header;
  const bool holds = HoldsFor(from, header.chunk(), map);
  if (header.type() == wire::FETCH_REPLICA) {
    if (holds) OnFetchReplica(from, header, context);
  } else if (header.type() == wire::REPLICATE && holds) {
    OnReplicate(from, message, map, plan, context);
  } else if (from == holder_ && fetch_) {
    if (Status status = fetch_->OnMessage(message, plan); !status.ok()) {
      LOG_EVERY_T(WARNING, 1) << "ignores a message of " << from << ": " << status.message();
    }
    Tick(context);
  }
}

void Neighbours::OnReplicate(const PeerName& from, const Message& message, const ShardMap& map,
                             const JobPlan& plan, StepContext* context) {
  const wire::Header& header = message.header;
  const Range range = map.chunks()[header.chunk()].range;
  if (Status status = store_.Add(message, range.size(), plan); !status.ok()) {
    LOG_EVERY_T(WARNING, 1) << "ignores a replica of " << from << ": " << status.message();
    return;
  }
  context->Do(Acknowledgement(from, header));
}

void Neighbours::OnFetchReplica(const PeerName& from, const wire::Header& header,
                                StepContext* context) const {
  const auto versions = store_.Find(header.chunk());
  for (const auto& [number, version] : versions) {
    for (const auto& [array, payload] : version->arrays) {
      SendAction send{from, {}};
      send.message.header.set_type(wire::REPLICATE);
      send.message.header.set_chunk(header.chunk());
      send.message.header.set_round(number);
      send.message.header.set_version_array(array);
      send.message.header.set_arrays(static_cast<uint32_t>(version->arrays.size()));
      if (header.chunk() == 0) {
        *send.message.header.mutable_coordinator_state() = version->coordinator_state;
      }
      send.message.payload = payload;
      context->Do(std::move(send));
    }
  }
  SendAction reply = Acknowledgement(from, header);
  reply.message.header.set_round(versions.empty() ? -1 : versions.rbegin()->first);
  reply.message.header.set_versions(static_cast<uint32_t>(versions.size()));
  context->Do(std::move(reply));
}

void Neighbours::Fetch(std::span<const Chunk> chunks, const JobPlan& plan, StepContext* context) {
  constexpr int kArrays = 4;  // of a version, in most jobs
  fetch_.emplace(holder_, chunks, std::max(window_ / (kArrays * plan.MostKept(plan.delay())), 1));
  Tick(context);
}

void Neighbours::Tick(StepContext* context) {
  if (fetch_) fetch_->Tick(context);
}

const ReplicaFetch* Neighbours::fetched() const {
  return fetch_ && (fetch_->lost() || fetch_->complete()) ? &*fetch_ : nullptr;
}

}  // namespace kumo
