#include "worker/session/weights.h"

#include <utility>

#include <glog/logging.h>

namespace kumo {

Weights::Weights(const JobShape* shape) : shape_(shape) { Forget(); }

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
  sides_[header.vector()].arrived.push_back(message);
  return true;
}

void Weights::Install(const Message& message, Side* side, Reached* reached,
                      WorkerStepContext* context) {
  const wire::Header& header = message.header;
  int64_t& installed = side->installed[header.chunk()];
  if (installed == header.round()) return;
  installed = header.round();
  if (side->asked == header.round()) --side->missing;
  const auto codec = FindCodec(header.codec());
  context->Do(InstallAction{header.chunk(), header.vector(), *codec, message.payload});
  if (header.chunk() != 0 || header.vector() != wire::START) return;
  save_ = header.save();
  reached->stop = header.stop();
  reached->move = header.move();
}

Weights::Reached Weights::Reach(wire::Vector vector, int64_t version, WorkerStepContext* context) {
  Side& side = sides_[vector];
  Reached reached;
  for (const Message& message : std::exchange(side.arrived, {})) {
    if (message.header.round() == version) Install(message, &side, &reached, context);
  }
  if (side.asked != version) AskFor(vector, version, context);
  reached.complete = side.missing == 0;
  return reached;
}

void Weights::AskFor(wire::Vector vector, int64_t version, WorkerStepContext* context) {
  // Scenario: pulls of version 8 fill the window, of chunks that are here at 7, when a lease comes
  // of a partition whose round 7 is missing. Without its contribution there is no version 8: the
  // pulls of 7 would wait behind those for ever.
  for (const OpenRequest* pull : context->requests->OfType(wire::PULL)) {
    const wire::Header& asked = pull->message.header;
    if (asked.vector() == vector) context->requests->Drop(asked.request());
  }
  Side& side = sides_[vector];
  side.asked = version;
  side.missing = 0;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (side.installed[chunk.index] == version) continue;
    ++side.missing;
    wire::Header header;
    header.set_type(wire::PULL);
    header.set_vector(vector);
    header.set_chunk(chunk.index);
    header.set_round(version);
    context->Ask(chunk.server, std::move(header));
  }
}

void Weights::AskAgain() {
  for (Side& side : sides_) side.asked = -1;
}

void Weights::Forget() {
  for (Side& side : sides_) {
    side = Side();
    side.installed.assign(shape_->map.chunks().size(), -1);
  }
}

}  // namespace kumo
