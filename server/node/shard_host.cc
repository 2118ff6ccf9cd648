#include "server/node/shard_host.h"

#include <utility>

#include <glog/logging.h>

#include "common/checkpoint/network_and_data.h"
#include "common/job/server_memory.h"
#include "common/transport/message.h"

namespace kumo {
namespace {

// Whether a message is leased to its sender. A state belongs to the version that its round has
// made, so the worker of that round may put it, and the worker of the next round too. Initial
// weights are the task of the worker with partition 0.
bool IsLeased(const LeaseTable& leases, const PeerName& from, const wire::Header& header) {
  const int partition = header.partition();
  const int64_t round = header.round();
  const bool before = header.type() == wire::PUT_STATE && round > 0;
  return leases.MayContribute(from, partition, round) ||
         (before && leases.MayContribute(from, partition, round - 1));
}

constexpr char kStartElsewhere[] = "; choose another output directory, or checkpoint.resume=never";

}  // namespace

ShardHost::ShardHost(int index, int servers, const Experiment& experiment, Role* role,
                     const std::optional<MemoryRoom>& memory)
    : index_(index), servers_(servers), experiment_(experiment), role_(role), memory_(memory) {
  if (experiment.cluster.KeepsVersionsTwice()) {
    neighbours_.emplace(index, servers, ChunkWindow(experiment.cluster.chunk_kib * 1024));
  }
}

Status ShardHost::LearnSpec(const wire::JobSpec& wire_spec,
                            const std::optional<checkpoint::Manifest>& restored) {
  KUMO_ASSIGN_OR_RETURN(JobSpec spec, ParseSpec(wire_spec));
  if (restored) {
    if (Status same = CheckSameNetworkAndData(*restored, spec, experiment_); !same.ok()) {
      return FailedPrecondition(same.message() + kStartElsewhere);
    }
    for (const SettingChange& change : ChangesOfNetworkAndData(*restored, spec)) {
      LOG(WARNING) << "from now on: " << DescribeChange(change);
    }
  }
  KUMO_ASSIGN_OR_RETURN(JobPlan plan, PlanFor(experiment_, spec));
  if (restored && restored->version() > plan.rounds()) {
    return FailedPrecondition("checkpoint " + restored->name() + " is of round " +
                              std::to_string(restored->version()) + ", but the job has " +
                              std::to_string(plan.rounds()) + " rounds with these data" +
                              kStartElsewhere);
  }
  const ShardMap map = ShardMapFor(experiment_, spec.layout, servers_);
  role_->OnSpec(plan, map, spec);
  plan_ = std::move(plan);
  spec_ = std::move(spec);
  return OkStatus();
}

void ShardHost::Enter(const Generation& former, const Generation& generation,
                      StepContext* context) {
  if (ready_ && generation.since == former.since) {
    // The job goes on. The next server may be another process, which lacks the versions of this
    // one.
    unconfirmed_.Clear();  // of the former generation; their workers push again
    if (generation.number != 0) shard_->ReplicateAgain(context);
    return;
  }
  shard_.reset();
  unconfirmed_.Clear();
  ready_ = lost_ = false;
  if (!neighbours_) return;
  neighbours_->StopFetching();
  if (generation.since != former.since) neighbours_->Clear();
}

Status ShardHost::Build(const Generation& generation, StepContext* context) {
  if (shard_ || !spec_) return OkStatus();
  if (memory_) {
    KUMO_RETURN_IF_ERROR(MemoryOfServer(experiment_, *spec_, servers_).CheckFits(*memory_));
  }
  const ShardPlace place{.generation = generation.since, .index = index_, .servers = servers_};
  const auto observe = [role = role_](int64_t version, const MetricSums& metrics,
                                      StepContext* within) {
    return role->OnVersion(version, metrics, within);
  };
  KUMO_ASSIGN_OR_RETURN(shard_, Shard::Make(place, experiment_, *plan_, *spec_, observe));
  const ShardMap& map = shard_->map();
  LOG(INFO) << "holds " << map.ServerBytes(index_) << " of " << spec_->layout.size() * sizeof(float)
            << " bytes of weights";
  if (generation.since != generation.number && neighbours_) {
    // The job has not gone back: the next server has the versions of this shard.
    neighbours_->Fetch(map.ServerChunks(index_), *plan_, context);
    AdoptFetched(context);
    return OkStatus();
  }
  ready_ = generation.restore.empty();
  if (!ready_) {
    context->Do(RestoreAction{generation.number, generation.restore, map.ServerRange(index_),
                              generation.start_version, OkStatus(), spec_->layout});
  }
  return OkStatus();
}

Status ShardHost::OnRestored(const Result<ShardSnapshot>& snapshot, StepContext* context) {
  if (!shard_ || ready_) return OkStatus();
  KUMO_RETURN_IF_ERROR(snapshot.status());
  KUMO_RETURN_IF_ERROR(shard_->Restore(*snapshot, context));
  ready_ = true;
  return OkStatus();
}

void ShardHost::OnFromNeighbour(const PeerName& from, const Message& message,
                                StepContext* context) {
  if (!neighbours_ || !shard_) return;
  const wire::Header& header = message.header;
  if (header.type() == wire::ACK && header.acknowledges() == wire::REPLICATE) {
    if (ready_ && from == neighbours_->holder()) shard_->OnReplicated(header, context);
    return;
  }
  neighbours_->OnMessage(from, message, shard_->map(), *plan_, context);
  AdoptFetched(context);
}

// The fetch from the next server is over: the shard is ready, or lost.
void ShardHost::AdoptFetched(StepContext* context) {
  const ReplicaFetch* const fetched = neighbours_ ? neighbours_->fetched() : nullptr;
  if (!fetched) return;
  const Status status = fetched->lost() ? DataLoss("the next server has not kept all chunks")
                                        : shard_->Adopt(fetched->store());
  neighbours_->StopFetching();
  ready_ = status.ok();
  lost_ = !ready_;
  if (lost_) {
    LOG(WARNING) << status.message();
    return;
  }
  if (shard_->map().chunks().front().server == index_) {
    const auto [version, directive] = shard_->newest_directive();
    role_->TakeOver(version, directive, context);
  }
  wire::ServerReport report;
  shard_->Describe(&report);
  LOG(INFO) << "goes on from round " << report.version()
            << ", with the versions that the next server has kept";
}

Status ShardHost::OnMessage(const PeerName& from, const Message& message, StepContext* context) {
  if (!shard_ || !ready_) return OkStatus();
  return Deliver({from, message, context->now}, context);
}

// Unavailable means that the message would count if it were leased to its sender. The lease may be
// on its way from server 0, so the message waits; other errors refuse it.
Status ShardHost::Deliver(UnconfirmedContributions::Entry arrived, StepContext* context) {
  const wire::Header& header = arrived.message.header;
  const bool leased = IsLeased(role_->leases(), arrived.from, header);
  // The coordinator must know the origin of the weights before the shard makes version 0, since its
  // state travels with that version.
  if (leased && header.type() == wire::INITIALISE && header.chunk() == 0) {
    KUMO_RETURN_IF_ERROR(role_->OnMessage(arrived.from, header, context));
  }
  Status status = header.type() == wire::EVALUATED
                      ? role_->OnMessage(arrived.from, header, context)
                      : shard_->OnMessage(arrived.from, arrived.message, leased, context);
  if (status.code() != StatusCode::kUnavailable) return status;
  unconfirmed_.Keep(std::move(arrived));
  return OkStatus();
}

void ShardHost::TryUnconfirmed(StepContext* context) {
  for (UnconfirmedContributions::Entry& entry : unconfirmed_.TakeDue(context->now)) {
    const Status status = Deliver(std::move(entry), context);
    if (status.ok()) continue;
    LOG_EVERY_T(WARNING, 1) << "refused a message whose lease was confirmed late: "
                            << status.message();
  }
}

Status ShardHost::OnComputed(const ChunkWork& work, StepContext* context) {
  if (!shard_ || work.generation != shard_->generation()) return OkStatus();
  return shard_->OnComputed(work, context);
}

Status ShardHost::SaveNow(const SaveOrder& order, StepContext* context) {
  if (!shard_ || !ready_) return OkStatus();
  return shard_->SaveNow(order.version, order.attempt, order.partial, context);
}

ShardFileHeader ShardHost::FileHeader(const JobIdentity& identity, const Generation& generation,
                                      int64_t version) const {
  ShardFileHeader header;
  header.job = identity.JobId();
  header.experiment_hash = identity.experiment_hash;
  header.fingerprint = spec_->layout.fingerprint();
  header.version = version;
  header.generation = generation.number;
  header.shard = static_cast<uint32_t>(index_);
  header.shards = static_cast<uint32_t>(servers_);
  return header;
}

void ShardHost::Forget(const PeerName& peer) {
  unconfirmed_.Forget(peer);
  if (shard_) shard_->Forget(peer);
}

void ShardHost::Tick(StepContext* context) {
  if (neighbours_) neighbours_->Tick(context);
  AdoptFetched(context);
  if (shard_) shard_->Tick(context);
}

bool ShardHost::busy() const {
  return !unconfirmed_.empty() || (neighbours_ && neighbours_->fetching()) ||
         (shard_ && shard_->replicating());
}

ShardStatus ShardHost::status() const {
  return {ready_, neighbours_ && shard_ && neighbours_->HoldsReplica(shard_->map())};
}

void ShardHost::Describe(wire::ServerReport* report) const {
  report->set_ready(ready_);
  report->set_lost(lost_);
  if (shard_) shard_->Describe(report);
}

}  // namespace kumo
