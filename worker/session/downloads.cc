#include "worker/session/downloads.h"

#include <utility>

#include <glog/logging.h>

namespace kumo {

WeightDownload::WeightDownload(const JobShape* shape) : shape_(shape) { Forget(); }

bool WeightDownload::OnChunk(const wire::Header& asked, const Message& message) {
  const wire::Header& header = message.header;
  if (header.chunk() != asked.chunk() || header.vector() != asked.vector() ||
      header.round() != asked.round()) {
    return false;
  }
  if (header.has_base() && header.base() != asked.base()) return false;
  const Chunk& chunk = shape_->map.chunks()[header.chunk()];
  if (header.has_base() && message.payload.empty() && SameNumbers(asked, chunk)) {
    sides_[header.vector()].arrived.push_back(message);
    return true;
  }
  if (!IsOf(header, chunk, message.payload.bytes.size())) {
    LOG(WARNING) << "chunk " << header.chunk() << " arrived with " << message.payload.bytes.size()
                 << " bytes, which codec " << header.codec() << " does not produce"
                 << (header.has_base() ? " for a difference" : "") << "; pulls it again";
    return false;
  }
  sides_[header.vector()].arrived.push_back(message);
  return true;
}

// Whether an answer with that many bytes is a code of the chunk, of the form that it says.
bool WeightDownload::IsOf(const wire::Header& answer, const Chunk& chunk, size_t bytes) const {
  const auto numbers = static_cast<size_t>(chunk.range.size());
  if (const std::optional<Relay> relay = RelayIn(answer)) {
    return answer.codec() == static_cast<uint32_t>(relay->codec->id()) &&
           bytes == relay->EncodedBytes(numbers);
  }
  const Codec* const codec = shape_->policy.FindPullCodec(answer.codec());
  return codec != nullptr && codec->codes_weights() != answer.has_base() &&
         bytes == codec->EncodedBytes(numbers);
}

// The contributions that a message has; nullopt: it has numbers.
std::optional<Relay> WeightDownload::RelayIn(const wire::Header& answer) const {
  if (!answer.has_base() || answer.vector() != wire::START) return std::nullopt;
  return shape_->policy.RelayOf(shape_->plan, answer.round(), shape_->map.chunks()[answer.chunk()]);
}

// Whether the worker has the numbers of the version that it has asked for.
bool WeightDownload::SameNumbers(const wire::Header& asked, const Chunk& chunk) const {
  return asked.has_base() && shape_->plan.SameNumbers(asked.base(), asked.round(), chunk);
}

void WeightDownload::Install(const Message& message, Side* side, Reached* reached,
                             WorkerStepContext* context) {
  const wire::Header& header = message.header;
  int64_t& installed = side->installed[header.chunk()];
  if (installed == header.round()) return;
  installed = header.round();
  side->applied[header.chunk()] = header.applied();
  side->whole = -1;
  if (side->asked == header.round() && --side->missing == 0) side->whole = side->asked;
  if (!message.payload.empty()) {  // else as the version before
    std::optional<Relay> relay = RelayIn(header);
    const Codec* const codec = relay ? relay->codec : shape_->policy.FindPullCodec(header.codec());
    context->Do(InstallAction{header.chunk(), header.vector(), header.has_base(), codec,
                              message.payload, std::move(relay)});
  }
  if (header.chunk() != 0 || header.vector() != wire::START) return;
  save_ = header.save();
  reached->stop = header.stop();
  reached->move = header.move();
}

WeightDownload::Reached WeightDownload::Reach(wire::Vector vector, int64_t version, bool whole,
                                              WorkerStepContext* context) {
  Side& side = sides_[vector];
  Reached reached;
  while (side.whole != version) {
    const int64_t step = StepTowards(vector, version);
    for (const Message& message : std::exchange(side.arrived, {})) {
      if (message.header.round() == step) Install(message, &side, &reached, context);
    }
    // Directives with a version on the way concern earlier rounds than this worker computes.
    if (step != version) reached = {};
    if (side.asked != step) AskFor(vector, step, whole, context);
    if (side.whole != step) return reached;
  }
  reached.complete = true;
  return reached;
}

void WeightDownload::AskAhead(wire::Vector vector, int64_t version, WorkerStepContext* context) {
  Side& side = sides_[vector];
  const int64_t step = StepTowards(vector, version);
  if (side.whole != step && side.asked != step) AskFor(vector, step, /*whole=*/true, context);
}

// The version to install next on the way to `version`. A change is told from the version before: so
// versions that no round starts from are installed too, if that takes few steps.
int64_t WeightDownload::StepTowards(wire::Vector vector, int64_t version) const {
  const int64_t whole = sides_[vector].whole;
  const bool steps = shape_->policy.pulls_changes() && vector == wire::START;
  const bool near = whole >= 0 && whole < version && version <= whole + 1 + shape_->plan.delay();
  return steps && near ? whole + 1 : version;
}

void WeightDownload::AskFor(wire::Vector vector, int64_t version, bool whole,
                            WorkerStepContext* context) {
  // Scenario: pulls of version 8 fill the window, for chunks that are installed at 7, when a lease
  // arrives for a partition whose round 7 is missing. Version 8 cannot exist without that
  // contribution, so the pulls of 7 behind those of 8 would wait for ever.
  for (const OpenRequest* pull : context->requests->OfType(wire::PULL)) {
    const wire::Header& asked = pull->message.header;
    if (asked.vector() == vector) context->requests->Drop(asked.request());
  }
  Side& side = sides_[vector];
  side.asked = version;
  side.missing = 0;
  for (const Chunk& chunk : shape_->map.chunks()) {
    int64_t& installed = side.installed[chunk.index];
    if (installed == version) continue;
    ++side.missing;
    wire::Header header;
    header.set_type(wire::PULL);
    header.set_vector(vector);
    header.set_chunk(chunk.index);
    header.set_round(version);
    header.set_wait(whole && shape_->plan.on_arrival());
    // Numbers that have not changed are not sent again, but the version is waited for as any other:
    // a push to a round that the chunk has not reached would be refused.
    const bool change = shape_->policy.pulls_changes() && vector == wire::START;
    const bool same = shape_->plan.SameNumbers(installed, version, chunk);
    if (installed >= 0 && (change || same)) header.set_base(installed);
    context->Ask(chunk.server, std::move(header));
  }
  if (side.missing == 0) side.whole = version;
}

void WeightDownload::AskAgain() {
  for (Side& side : sides_) side.asked = side.whole = -1;
}

void WeightDownload::Forget() {
  for (Side& side : sides_) {
    side = Side();
    side.installed.assign(shape_->map.chunks().size(), -1);
    side.applied.assign(shape_->map.chunks().size(), 0);
  }
}

void StateDownload::AskFor(int partition, const Lease& lease, WorkerStepContext* context) {
  if (lease.round == 0 || !asked_.insert(partition).second) return;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (!chunk.trained()) continue;
    for (int array = 0; array < shape_->policy.carried().count(); ++array) {
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

bool StateDownload::OnState(const wire::Header& asked, const Payload& payload) {
  const size_t bytes = shape_->map.chunks()[asked.chunk()].range.size() * sizeof(float);
  if (!payload.empty() && payload.bytes.size() != bytes) return false;
  states_[{asked.partition(), asked.chunk(), asked.carried_array()}] = payload;
  return true;
}

AdoptAction StateDownload::Take(int partition, int64_t round) {
  AdoptAction adopt{partition, {}, round};
  size_t asked = 0;
  for (const auto& [key, payload] : states_) {
    if (std::get<0>(key) != partition) continue;
    ++asked;
    if (payload.empty()) continue;
    adopt.arrays.push_back({std::get<1>(key), std::get<2>(key), payload});
  }
  LOG_IF(WARNING, adopt.arrays.size() < asked)
      << "partition " << partition << " begins round " << round << " without "
      << (adopt.arrays.empty() ? "" : "a part of ")
      << "its carried state (residual, weights of its own, optimiser state), which starts at zero: "
         "it was lost with a worker, or the checkpoint has none";
  Forget(partition);
  return adopt;
}

void StateDownload::Forget(int partition) {
  asked_.erase(partition);
  std::erase_if(states_, [&](const auto& s) { return std::get<0>(s.first) == partition; });
}

void StateDownload::ForgetAll() {
  asked_.clear();
  states_.clear();
}

}  // namespace kumo
