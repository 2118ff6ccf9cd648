#include "worker/session/weights.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {

Weights::Weights(const JobShape* shape) : shape_(shape) {
  for (int vector : {wire::START, wire::WEIGHTS}) {
    installed_[vector].assign(shape_->map.chunks().size(), -1);
    waiting_[vector].resize(shape_->map.chunks().size());
  }
}

bool Weights::OnChunk(const wire::Header& asked, const Message& message) {
  const wire::Header& header = message.header;
  if (header.chunk() != asked.chunk() || header.vector() != asked.vector() ||
      header.round() != asked.round()) {
    return false;
  }
  const auto codec = FindCodec(header.codec());
  const size_t numbers = shape_->map.chunks()[header.chunk()].range.size();
  if (!codec.ok() || message.payload.bytes.size() != (*codec)->EncodedBytes(numbers)) {
    LOG(WARNING) << "chunk " << header.chunk() << " came with " << message.payload.bytes.size()
                 << " bytes of codec " << header.codec() << "; asks again";
    return false;
  }
  waiting_[header.vector()][header.chunk()] = message;
  return true;
}

Weights::Reached Weights::Reach(wire::Vector vector, int64_t version, WorkerTurn* turn) {
  Reached reached{.complete = true};
  for (const Chunk& chunk : shape_->map.chunks()) {
    auto& waiting = waiting_[vector][chunk.index];
    if (waiting && waiting->header.round() == version) {
      const auto codec = FindCodec(waiting->header.codec());
      turn->Do(InstallAction{chunk.index, vector, *codec, std::move(waiting->payload)});
      installed_[vector][chunk.index] = version;
      if (chunk.index == 0 && vector == wire::START) {
        save_ = waiting->header.save();
        reached.stop = waiting->header.stop();
        reached.move = waiting->header.move();
      }
    }
    waiting.reset();
    if (installed_[vector][chunk.index] == version) continue;
    reached.complete = false;
    if (turn->requests->Waits({wire::PULL, 0, chunk.index, vector}, version)) continue;
    wire::Header header;
    header.set_type(wire::PULL);
    header.set_vector(vector);
    header.set_chunk(chunk.index);
    header.set_round(version);
    turn->Ask(chunk.server, std::move(header));
  }
  return reached;
}

void Weights::Forget() {
  for (int vector : {wire::START, wire::WEIGHTS}) {
    std::fill(installed_[vector].begin(), installed_[vector].end(), -1);
    for (auto& waiting : waiting_[vector]) waiting.reset();
  }
}

}  // namespace kumo
