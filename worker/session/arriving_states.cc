#include "worker/session/arriving_states.h"

#include <utility>

namespace kumo {

void ArrivingStates::AskFor(int partition, const Lease& lease, WorkerStepContext* context) {
  if (lease.round == 0 || !asked_.insert(partition).second) return;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    for (int array = 0; array < shape_->carried_arrays; ++array) {
      if (states_.contains({partition, chunk.index, array})) continue;
      wire::Header header;
      header.set_type(wire::GET_STATE);
      header.set_partition(partition);
      header.set_chunk(chunk.index);
      header.set_carried_array(array);
      header.set_round(lease.round);
      header.set_wait(lease.handed_over && lease.round == lease.from);
      context->Ask(chunk.server, std::move(header));
    }
  }
}

bool ArrivingStates::OnState(const wire::Header& asked, const Payload& payload) {
  const size_t bytes = shape_->map.chunks()[asked.chunk()].range.size() * sizeof(float);
  if (!payload.empty() && payload.bytes.size() != bytes) return false;
  states_[{asked.partition(), asked.chunk(), asked.carried_array()}] = payload;
  return true;
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
  asked_.erase(partition);
  std::erase_if(states_, [&](const auto& s) { return std::get<0>(s.first) == partition; });
}

void ArrivingStates::ForgetAll() {
  asked_.clear();
  states_.clear();
}

}  // namespace kumo
