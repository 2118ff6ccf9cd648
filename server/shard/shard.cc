#include "server/shard/shard.h"

#include <algorithm>
#include <string>

#include "common/job/buggify.h"
#include "common/job/protocol.h"

namespace kumo {

Result<std::unique_ptr<Shard>> Shard::Make(const ShardPlace& place, const Experiment& experiment,
                                           const JobPlan& plan, const JobSpec& spec,
                                           VersionObserver observer) {
  const int64_t chunk_bytes = experiment.cluster.chunk_kib * 1024;
  ShardMap map = ShardMapFor(experiment, spec.layout, place.servers);
  KUMO_ASSIGN_OR_RETURN(RoundMath math, RoundMath::Make(experiment, plan, spec, map, place.index));
  std::optional<ReplicaSender> replica_sender;
  if (experiment.cluster.KeepsVersionsTwice()) {
    replica_sender.emplace(place.index, place.servers, chunk_bytes, plan);
  }
  return std::unique_ptr<Shard>(new Shard(place, std::move(map), std::move(math),
                                          std::move(replica_sender), std::move(observer)));
}

Shard::Shard(const ShardPlace& place, ShardMap map, RoundMath math,
             std::optional<ReplicaSender> replica_sender, VersionObserver observer)
    : place_(place),
      map_(std::move(map)),
      math_(std::move(math)),
      directives_(std::move(observer), &math_.plan()),
      replica_sender_(std::move(replica_sender)) {
  for (const Chunk& chunk : map_.ServerChunks(place_.index)) {
    parts_.push_back({ShardChunk(chunk, &math_),
                      CarriedStates(chunk, &math_.plan(), math_.policy().carried().count())});
  }
}

Result<Shard::Part*> Shard::Find(const wire::Header& header) {
  const int64_t local = int64_t{header.chunk()} - map_.FirstChunk(place_.index);
  if (local < 0 || local >= static_cast<int64_t>(parts_.size())) {
    return InvalidArgument("chunk " + std::to_string(header.chunk()) + " is not on server " +
                           std::to_string(place_.index));
  }
  return &parts_[local];
}

// --- Beginning.

Status Shard::Restore(const ShardSnapshot& snapshot, StepContext* context) {
  const int64_t version = snapshot.version;
  if (version < 0 || version > math_.plan().rounds()) {
    return DataLoss("version " + std::to_string(version) + " is not one of this job's");
  }
  for (auto& [chunk, carried] : parts_) {
    KUMO_ASSIGN_OR_RETURN(auto versions, RestoredVersions(snapshot, chunk.chunk(), math_.plan()));
    KUMO_RETURN_IF_ERROR(chunk.Begin(std::move(versions)));
    carried.Restore(snapshot);
  }
  for (const auto& [chunk, carried] : parts_) {
    // Workers pull the versions before too, and need what is directed with them.
    for (int64_t v = math_.plan().BaseOf(version); v <= version && chunk.chunk().index == 0; ++v) {
      directives_.Observe(v, context);
    }
    if (replica_sender_) replica_sender_->SendAll(chunk, directives_, context);
  }
  return OkStatus();
}

Status Shard::Adopt(const ReplicaStore& replica) {
  for (auto& [chunk, carried] : parts_) {
    const int index = chunk.chunk().index;
    KUMO_ASSIGN_OR_RETURN(ReplicaStore::Newest newest, replica.Unpack(index, math_.plan()));
    KUMO_RETURN_IF_ERROR(chunk.Begin(std::move(newest.versions)));
    if (index == 0) directives_.Adopt(chunk.version(), newest.coordinator_state);
  }
  return OkStatus();
}

// --- Rounds.

Status Shard::OnMessage(const PeerName& from, const Message& message, bool leased,
                        StepContext* context) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(Part * part, Find(header));
  switch (header.type()) {
    case wire::INITIALISE:
      return OnInitialise(from, message, leased, part, context);
    case wire::PUSH:
      return OnPush(from, message, leased, &part->chunk, context);
    case wire::PULL:
      return part->chunk.OnPull(from, header, DirectiveFor(header.chunk(), header.round()),
                                context);
    case wire::PUT_STATE:
    case wire::GET_STATE:
      return OnCarried(from, message, leased, part, context);
    default:
      return InvalidArgument("a shard takes no message of type " + std::to_string(header.type()));
  }
}

// Initial weights arrive from the worker with partition 0. Every chunk takes the first ones;
// repeated ones are acknowledged only.
Status Shard::OnInitialise(const PeerName& from, const Message& message, bool leased, Part* part,
                           StepContext* context) {
  KUMO_ASSIGN_OR_RETURN(const bool first, part->chunk.OnInitialise(from, message, leased, context));
  if (!first) return OkStatus();
  if (message.header.chunk() == 0) directives_.Observe(0, context);
  ReachVersion(part, context);
  // Published at once: initial weights that are lost can be made again.
  if (replica_sender_) replica_sender_->Send(part->chunk, directives_, context);
  return OkStatus();
}

Status Shard::OnPush(const PeerName& from, const Message& message, bool leased, ShardChunk* chunk,
                     StepContext* context) {
  const wire::Header& header = message.header;
  KUMO_ASSIGN_OR_RETURN(const bool counts,
                        chunk->OnPush(from, message, leased,
                                      /*held=*/replica_sender_.has_value(), context));
  if (!counts) return OkStatus();
  if (header.chunk() == 0) {
    directives_.Note(header.round(), header.partition(), ReadSums(header.metrics()));
  }
  Compute(chunk, context);
  return OkStatus();
}

void Shard::Compute(ShardChunk* chunk, StepContext* context) {
  std::shared_ptr<ChunkWork> work = chunk->NextWork(/*freeze=*/replica_sender_.has_value());
  if (!work) return;
  work->generation = place_.generation;
  context->Do(ComputeAction{std::move(work)});
}

Status Shard::OnComputed(const ChunkWork& work, StepContext* context) {
  Part* const part = &parts_[work.chunk - map_.FirstChunk(place_.index)];
  ShardChunk& chunk = part->chunk;
  KUMO_ASSIGN_OR_RETURN(const bool made, chunk.OnComputed(work));
  if (!made) {
    AnswerParked(part, context);
    Compute(&chunk, context);
    return OkStatus();
  }
  // The coordinator decides about the next round before any worker can start it.
  if (work.chunk == 0) directives_.Observe(chunk.version() + 1, context);
  if (replica_sender_) {
    replica_sender_->Send(chunk, directives_, context);  // published when the next server has it
  } else {
    Publish(part, context);
  }
  return OkStatus();
}

// Publishes the version that a chunk has made.
void Shard::Publish(Part* part, StepContext* context) {
  const std::optional<Version> saved = part->chunk.Publish(context);
  ReachVersion(part, context);
  ShardChunk& chunk = part->chunk;
  if (saved) {
    snapshots_.Add(chunk.chunk(), chunk.version(), *saved, chunk.Earlier(), math_.plan());
    HandOutComplete(context);
  }
  // With a delay, contributions to the next round may be there.
  Compute(&chunk, context);
}

void Shard::ReachVersion(Part* part, StepContext* context) {
  const int64_t version = part->chunk.version();
  part->carried.Acknowledge(version - 1, context);
  HandOutComplete(context);
  part->carried.DropBefore(std::min(version, snapshots_.oldest().value_or(version)));
  AnswerParked(part, context);
}

void Shard::AnswerParked(Part* part, StepContext* context) {
  part->chunk.AnswerParked(
      [&](int64_t pulled) { return DirectiveFor(part->chunk.chunk().index, pulled); }, context);
}

Directive Shard::DirectiveFor(int chunk, int64_t pulled) const {
  const JobPlan& plan = math_.plan();
  const bool known = pulled >= 0 && pulled <= plan.rounds();
  return known ? directives_.At(chunk, plan.ToldWith(pulled)) : Directive();
}

// --- Snapshots.

// PUT_STATE and GET_STATE. Either may complete a snapshot: the latter says that a state is lost.
Status Shard::OnCarried(const PeerName& from, const Message& message, bool leased, Part* part,
                        StepContext* context) {
  const wire::Header& header = message.header;
  auto& [chunk, carried] = *part;
  bool answer = false;
  if (header.type() == wire::PUT_STATE) {
    if (Buggify(RareWay::kStateOverlooked)) return OkStatus();
    KUMO_RETURN_IF_ERROR(carried.Put(from, message, leased, chunk.version(),
                                     /*held=*/replica_sender_.has_value(), context));
  } else {
    KUMO_ASSIGN_OR_RETURN(answer, carried.Asks(from, header, chunk.version()));
  }
  HandOutComplete(context);
  if (answer) carried.Answer(from, header, context);
  return OkStatus();
}

Status Shard::SaveNow(int64_t version, int attempt, bool partial, StepContext* context) {
  for (const auto& [chunk, carried] : parts_) {
    if (chunk.version() == version && chunk.at_rest() && chunk.as_published()) continue;
    const std::string name = "chunk " + std::to_string(chunk.chunk().index);
    if (!chunk.at_rest()) return Aborted(name + " is being computed");
    if (chunk.version() == version) return Aborted(name + " has contributions to later rounds");
    return Aborted(name + " is at version " + std::to_string(chunk.version()));
  }
  if (parts_.empty()) return OkStatus();
  snapshots_.Start(version, attempt);
  for (const auto& [chunk, carried] : parts_) {
    snapshots_.Add(chunk.chunk(), version, Frozen(*chunk.Find(version)), chunk.Earlier(),
                   math_.plan());
  }
  // A snapshot that is not complete is handed out when the last state arrives.
  if (partial) {
    HandOutOldest(context);
  } else {
    HandOutComplete(context);
  }
  return OkStatus();
}

// A snapshot is complete with all chunks and the states of all partitions. No state of a version
// arrives after the round of that number has closed, since its worker awaits the acknowledgements
// before it: a state that is missing then is lost with its worker.
void Shard::HandOutComplete(StepContext* context) {
  while (const std::optional<int64_t> version = snapshots_.oldest()) {
    const auto passed = [&](const Part& part) { return part.chunk.version() > *version; };
    if (snapshots_.chunks() < static_cast<int>(parts_.size())) {
      if (!std::ranges::all_of(parts_, passed)) return;
      snapshots_.Take();  // some chunks were not told to save
      continue;
    }
    const bool all_there = std::ranges::all_of(
        parts_, [&](const Part& part) { return part.carried.IsComplete(*version); });
    if (!all_there && !std::ranges::any_of(parts_, passed)) return;
    HandOutOldest(context);
  }
}

void Shard::HandOutOldest(StepContext* context) {
  SaveAction save = snapshots_.Take();
  for (const Part& part : parts_) part.carried.AddTo(&save.snapshot);
  context->Do(std::move(save));
}

// --- Replicas.

// A chunk's version is published when the next server has it and the versions before: with one of
// them missing there, a restart in this moment could not serve the partitions that compute a round
// again. After a restart of the next server the newest version is sent first, then those before.
void Shard::OnReplicated(const wire::Header& header, StepContext* context) {
  const auto found = Find(header);
  if (!replica_sender_ || !found.ok() || !replica_sender_->OnAcknowledged(header, context)) return;
  const ShardChunk& chunk = (*found)->chunk;
  if (replica_sender_->HasMade(chunk)) Publish(*found, context);
  if (header.round() == chunk.version()) replica_sender_->SendEarlier(chunk, context);
}

void Shard::ReplicateAgain(StepContext* context) {
  if (!replica_sender_) return;
  replica_sender_->StartOver();
  for (const auto& [chunk, carried] : parts_) {
    if (chunk.version() >= 0) replica_sender_->SendAll(chunk, directives_, context);
  }
}

void Shard::Forget(const PeerName& peer) {
  for (auto& [chunk, carried] : parts_) {
    chunk.Forget(peer);
    carried.Forget(peer);
  }
}

void Shard::Describe(wire::ServerReport* report) const {
  int64_t oldest = math_.plan().rounds();
  for (const Part& part : parts_) oldest = std::min(oldest, part.chunk.version());
  report->set_version(oldest);
  report->set_shard_bytes(map_.ServerBytes(place_.index));
  if (oldest < 0) report->set_waits_for("the initial weights");
  if (oldest < 0 || oldest >= math_.plan().rounds()) return;
  std::vector<int> missing;
  for (const Part& part : parts_) {
    if (part.chunk.version() != oldest || !part.chunk.at_rest()) continue;
    missing = part.chunk.round().Missing();
    if (!missing.empty()) break;
  }
  std::string names;
  for (const int partition : missing) {
    names += (names.empty() ? "" : ", ") + std::to_string(partition);
    if (report->missing_size() < kMostMissing) report->add_missing(partition);
  }
  if (names.empty()) return;
  report->set_waits_for("partition " + names + " of round " + std::to_string(oldest));
}

}  // namespace kumo
