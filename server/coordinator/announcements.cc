#include "server/coordinator/announcements.h"

#include <algorithm>
#include <utility>

#include "common/job/buggify.h"

namespace kumo {
namespace {

// A round is late if it takes twice its usual time, and at least this long.
constexpr TimeUs kLeastLate = 3 * kSecond;
// Likewise, while no usual time is known.
constexpr TimeUs kLateAtFirst = 30 * kSecond;

// Removes the partitions that shards wait for: in each open round they wait for some.
void ForgetOpenRounds(wire::JobStatus* status) {
  for (wire::JobStatus::Server& server : *status->mutable_servers()) {
    if (server.report().missing_size() > 0) server.mutable_report()->clear_waits_for();
  }
}

}  // namespace

std::string WaitsForProcesses(const JobState& job, TimeUs now) {
  return job.start_gate.WaitsFor(job.phase, job.recovery, job.membership, job.plan.has_value(),
                                 now);
}

std::string WaitsFor(const JobState& job, TimeUs now) {
  const std::string processes = WaitsForProcesses(job, now);
  if (job.phase != JobPhase::kTraining || !processes.empty()) return processes;
  return job.members().WaitsForPartitions(
      now, job.leasing.table(), job.progress.Unevaluated(job.start.experiment.sync.partitions));
}

bool IsLate(const JobState& job, TimeUs now) {
  const LeaseTable& leases = job.leasing.table();
  const double round_ms = TypicalRound(leases, job.members().Takers(leases));
  const TimeUs usual = std::max(FromSeconds(round_ms / 1e3), job.clock.TypicalRound());
  return job.clock.Standstill(now) > (usual > 0 ? std::max(kLeastLate, 2 * usual) : kLateAtFirst);
}

void SendOrders(const JobState& job, const PeerName& to, StepContext* context) {
  if (Buggify(RareWay::kOrdersLost)) return;
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::HEARTBEAT_REPLY);
  // While claims are collected there are no orders: workers go on with the leases that they have,
  // unless the job has ended meanwhile.
  if (!job.leasing.collects_claims() || IsOver(job.phase)) {
    header.set_round(job.version);
    header.mutable_orders()->set_waits_for(WaitsForProcesses(job, context->now));
    job.shutdown.FillIn(job.phase, job.ending.stop(), job.version, &header);
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
  const LeaseTable& leases = job.leasing.table();
  const Generation& generation = job.recovery.generation();
  wire::JobStatus status;
  status.set_job_name(job.start.identity.job_name);
  status.set_generation(generation.number);
  status.set_phase(std::string(WordOf(job.phase)));
  job.saving.Describe(&status);
  status.set_curves_failure(job.curves_failure);
  const bool late = IsLate(job, now);
  if (!IsOver(job.phase)) {
    status.set_waits_for(late ? WaitsFor(job, now) : WaitsForProcesses(job, now));
  }
  job.progress.Describe(now, std::max(job.version, generation.start_version), job.plan,
                        TypicalRound(leases, job.members().Takers(leases)), &status);
  job.members().Describe(now, leases, &status);
  if (!late) ForgetOpenRounds(&status);
  return status;
}

std::shared_ptr<const wire::CoordinatorState> SuccessorsState(const JobState& job, TimeUs now) {
  const auto state = std::make_shared<wire::CoordinatorState>(job.progress.State(now));
  if (job.manifests.origin()) *state->mutable_origin() = *job.manifests.origin();
  for (const int64_t version : job.saving.directed()) state->add_save_at(version);
  state->set_stop_at(job.ending.stop().version());
  state->set_move_at(job.leasing.move_at());
  return state;
}

// --- Status replies.

TimeUs StatusReplies::Interval(int workers) {
  return std::clamp<TimeUs>(workers * kMillisecond, 20 * kMillisecond, kSecond);
}

void StatusReplies::Answer(const PeerName& to, const JobState& job, StepContext* context) {
  wire::Header& header = reply_.message.header;
  if (!header.has_job_status() ||
      context->now >= made_at_ + Interval(header.job_status().workers_size())) {
    header.set_type(wire::STATUS_REPLY);
    *header.mutable_job_status() = Shortened(StatusOf(job, context->now), kMostBytes);
    made_at_ = context->now;
  }
  reply_.to = to;
  context->Do(reply_);
}

wire::JobStatus Shortened(wire::JobStatus status, size_t most_bytes) {
  constexpr size_t kFraming = 2;      // of one worker in the list, at least
  constexpr size_t kLeftOutSize = 8;  // the number of those that are left out, at most
  size_t bytes = status.ByteSizeLong();
  if (bytes > most_bytes) bytes += kLeftOutSize;
  while (bytes > most_bytes && status.workers_size() > 0) {
    const size_t last = status.workers(status.workers_size() - 1).ByteSizeLong() + kFraming;
    bytes -= std::min(bytes, last);
    status.mutable_workers()->RemoveLast();
    status.set_workers_left_out(status.workers_left_out() + 1);
  }
  return status;
}

}  // namespace kumo
