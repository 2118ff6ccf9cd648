#include "server/coordinator/held_evaluations.h"

#include "server/protocol/messages.h"

namespace kumo {

void HeldEvaluations::Hold(int64_t version, int partition, int64_t now) {
  held_[{version, partition}].came_at = now;
}

void HeldEvaluations::Answer(const PeerName& from, const wire::Header& header,
                             StepContext* context) {
  const auto held = held_.find({header.round(), header.partition()});
  if (held != held_.end()) held->second.released[from] = Acknowledgement(from, header);
  context->Do(Acknowledgement(from, header, held != held_.end()));
}

void HeldEvaluations::Release(int64_t version, StepContext* context) {
  std::erase_if(held_, [&](const auto& entry) {
    const Held& evaluation = entry.second;
    if (evaluation.came_at >= version - 1) return false;
    for (const auto& [peer, release] : evaluation.released) context->Do(release);
    return true;
  });
}

}  // namespace kumo
