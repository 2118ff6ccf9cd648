#include "server/coordinator/announcements.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job/buggify.h"

namespace kumo {

std::string WaitsForProcesses(const JobState& job, TimeUs now) {
  return job.waiting.For(job.phase, job.recovery, job.membership, job.plan.has_value(), now);
}

std::string WaitsFor(const JobState& job, TimeUs now) {
  const std::string processes = WaitsForProcesses(job, now);
  if (job.phase != Phase::kTraining || !processes.empty()) return processes;
  return job.members().WaitsForPartitions(now, job.leasing.table(),
                                          job.progress.Unevaluated(job.settings.partitions));
}

void SendOrders(const JobState& job, const PeerName& to, StepContext* context) {
  if (Buggify(RareWay::kOrdersLost)) return;
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::HEARTBEAT_REPLY);
  if (!job.leasing.collects_claims()) {  // else no orders yet: who has leases goes on with them
    header.set_round(job.version);
    header.mutable_orders()->set_waits_for(WaitsForProcesses(job, context->now));
    job.farewell.FillIn(job.phase, job.ending.stop(), job.version, &header);
    if (const auto server = job.members().ServerIndex(to)) {
      const ServerMember& member = job.members().servers[*server];
      job.saving.FillIn(member, header.mutable_orders());
      job.leasing.FillIn(member, job.phase, header.mutable_orders());
    }
    job.leasing.FillIn(to, job.members(), job.phase, header.mutable_orders());
  }
  if (Buggify(RareWay::kOrdersTwice)) context->Do(reply);
  context->Do(std::move(reply));
}

void SendOrdersToAll(const JobState& job, StepContext* context) {
  for (const auto& [peer, worker] : job.members().workers) SendOrders(job, peer, context);
  if (IsOver(job.phase)) {
    for (const auto& [peer, name] : job.members().given_up) SendOrders(job, peer, context);
  }
  for (const ServerMember& server : job.members().servers) {
    if (!server.peer.empty() && !server.said_bye) SendOrders(job, server.peer, context);
  }
}

wire::JobStatus StatusOf(const JobState& job, TimeUs now) {
  constexpr const char* kPhases[] = {"waiting", "training", "finished", "failed"};
  const LeaseTable& leases = job.leasing.table();
  const Generation& generation = job.recovery.generation();
  wire::JobStatus status;
  status.set_job_name(job.settings.identity.job_name);
  status.set_generation(generation.number);
  status.set_phase(kPhases[static_cast<int>(job.phase)]);
  status.set_last_checkpoint(job.saving.checkpoints().last());
  if (!IsOver(job.phase)) status.set_waits_for(WaitsFor(job, now));
  job.progress.Describe(now, std::max(job.version, generation.start_version), job.plan,
                        leases.TypicalRound(job.members().Takers(leases)), &status);
  job.members().Describe(now, leases, &status);
  return status;
}

std::shared_ptr<const wire::CoordinatorState> SuccessorsState(const JobState& job,
                                                              const Directive& said, TimeUs now) {
  const auto state = std::make_shared<wire::CoordinatorState>(job.progress.State(now));
  if (job.manifests.origin()) *state->mutable_origin() = *job.manifests.origin();
  state->set_save(said.save);
  state->set_stop_at(job.ending.stop().version());
  state->set_move_at(said.move ? job.version + 1 : -1);
  return state;
}

}  // namespace kumo
