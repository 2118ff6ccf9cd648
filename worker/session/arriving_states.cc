#include "worker/session/arriving_states.h"

#include <utility>

namespace kumo {

void ArrivingStates::AskFor(int partition, const Lease& lease, WorkerTurn* turn) {
  if (lease.round == 0) return;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    for (int array = 0; array < shape_->carried_arrays; ++array) {
      if (turn->requests->Waits({wire::GET_STATE, partition, chunk.index, array}) ||
          states_.contains({partition, chunk.index, array})) {
        continue;
      }
      wire::Header header;
      header.set_type(wire::GET_STATE);
      header.set_partition(partition);
      header.set_chunk(chunk.index);
      header.set_slot(array);
      header.set_round(lease.round);
      header.set_wait(lease.handed_over && lease.round == lease.from);
      turn->Ask(chunk.server, std::move(header));
    }
  }
}

void ArrivingStates::OnState(const Message& message, WorkerTurn* turn) {
  const wire::Header& header = message.header;
  const OpenRequests::Key request{wire::GET_STATE, header.partition(), header.chunk(),
                                  header.slot()};
  if (!turn->requests->Waits(request, header.round())) return;
  const size_t bytes = shape_->map.chunks()[header.chunk()].range.size() * sizeof(float);
  if (!message.payload.empty() && message.payload.bytes.size() != bytes) return;
  turn->requests->Drop(request);
  states_[{header.partition(), header.chunk(), header.slot()}] = message.payload;
}

AdoptAction ArrivingStates::Take(int partition) {
  AdoptAction adopt{partition, {}};
  for (const auto& [key, payload] : states_) {
    if (std::get<0>(key) != partition || payload.empty()) continue;
    adopt.arrays.push_back({std::get<1>(key), std::get<2>(key), payload});
  }
  Forget(partition);
  return adopt;
}

void ArrivingStates::Forget(int partition) {
  std::erase_if(states_, [&](const auto& s) { return std::get<0>(s.first) == partition; });
}

}  // namespace kumo
