#include "server/server_node.h"

#include <algorithm>

#include <glog/logging.h>

#include "common/job/protocol.h"
#include "common/job/rare_ways.h"
#include "server/coordinator/coordinator.h"
#include "server/follower.h"
#include "server/messages.h"

namespace kumo {
namespace {

constexpr TimeUs kTick = 100 * kMillisecond;

std::unique_ptr<Role> MakeRole(const ServerNodeSettings& settings, TimeUs now) {
  const Experiment& experiment = settings.experiment;
  if (settings.index == 0) {
    return std::make_unique<Coordinator>(
        CoordinatorSettingsOf(experiment, settings.identity, settings.process.host,
                              settings.generation, settings.folder, settings.finished),
        settings.restored, now);
  }
  return std::make_unique<Follower>(
      FollowerSettings{settings.index, settings.identity, settings.process, experiment.cluster,
                       experiment.checkpoint.grace_s, experiment.checkpoint.HasPrivateDisks()},
      now);
}

}  // namespace

ServerNode::ServerNode(ServerNodeSettings settings, TimeUs now)
    : settings_(std::move(settings)),
      role_(MakeRole(settings_, now)),
      holding_(std::make_unique<Holding>(settings_.index, settings_.identity.servers,
                                         settings_.experiment, role_.get(), settings_.memory)),
      generation_(role_->generation()),
      // The coordinator is told at each of its ticks how far this server's shard is.
      report_interval_(
          settings_.index == 0 ? kTick : FromSeconds(settings_.experiment.cluster.heartbeat_s)) {
  if (!settings_.experiment.checkpoint.HasPrivateDisks()) return;
  disks_.emplace(settings_.index, settings_.identity.servers, settings_.experiment, role_.get());
}

ServerActions ServerNode::OnMessage(const PeerName& from, const Message& message, TimeUs now) {
  Turn turn{now, {}};
  const wire::Header& header = message.header;
  if (header.type() == wire::STATUS) {
    (void)role_->OnMessage(from, header, &turn);
  } else if (header.type() == wire::HELLO) {
    OnHello(from, message, &turn);
  } else if (header.job() != settings_.identity.JobId()) {
    // Another job's; its hello is answered, nothing else is.
  } else if (IsBetweenNeighbours(header)) {
    const bool ours = generation_.number != 0 && header.generation() == generation_.number;
    if (ours) holding_->OnFromNeighbour(from, message, &turn);
  } else if (from == ServerPeer(0) && settings_.index != 0) {
    (void)role_->OnMessage(from, header, &turn);
    const bool ours = header.generation() == generation_.number;
    if (ours && header.has_orders()) holding_->TryEarly(&turn);  // leases, maybe
    if (disks_) disks_->OnFromServer0(message, ours, &turn);
  } else {
    OnFromMember(from, message, &turn);
  }
  return Done(std::move(turn));
}

void ServerNode::OnHello(const PeerName& from, const Message& message, Turn* turn) {
  if (Buggify(RareWay::kHelloIgnored)) return;
  const wire::Hello& hello = message.header.hello();
  const bool worker = hello.role() == wire::Hello::WORKER;
  Status status = CheckHello(message.header, settings_.identity, holding_->spec());
  if (status.ok()) status = roster_.Check(from, hello);
  if (status.ok() && worker && !holding_->spec()) {
    status = holding_->LearnSpec(hello.spec(), settings_.restored);
    GoAlong(turn);
  }
  if (!status.ok()) {
    turn->Do(Refusal(from, status));
    return;
  }
  const Result<bool> joins = role_->OnHello(from, hello, turn);
  GoAlong(turn);
  if (!joins.ok()) {
    turn->Do(Refusal(from, joins.status(), worker ? 0 : hello.incarnation()));
  } else if (!*joins) {
    return;
  } else if (generation_.choosing || (worker && holding_->LacksPart())) {
    roster_.LetWait(from, worker);
  } else {
    roster_.Saw(from, turn->now);
    turn->Do(WelcomeTo(from, generation_));
  }
}

void ServerNode::OnFromMember(const PeerName& from, const Message& message, Turn* turn) {
  const wire::Header& header = message.header;
  // No message counts of a generation that is over, or that this server is late for.
  const bool other_generation = header.generation() != generation_.number;
  if (!roster_.Has(from) || other_generation) {
    if (header.type() != wire::HEARTBEAT || generation_.number == 0) return;
    // It has to join first; or again, when it sees our generation. A member may have got a WELCOME
    // of an older one late.
    SendAction reply{from, {}};
    reply.message.header.set_type(other_generation ? wire::HEARTBEAT_REPLY : wire::GONE);
    turn->Do(std::move(reply));
    return;
  }
  roster_.Saw(from, turn->now);
  if (header.type() == wire::BYE) {
    holding_->Forget(from);
    roster_.Remove(from);
  }
  Status status;
  switch (header.type()) {
    case wire::HEARTBEAT:
    case wire::BYE:
    case wire::SAVED:
      status = role_->OnMessage(from, header, turn);
      break;
    case wire::FETCH_FILE:
    case wire::FILE:
      if (disks_) disks_->OnMessage(from, message, turn);
      break;
    default:
      status = holding_->OnMessage(from, message, turn);
  }
  if (status.ok()) return;
  LOG_EVERY_T(WARNING, 1) << "refused a message of " << from << ": " << status.message();
  turn->Do(Refusal(from, status));
}

ServerActions ServerNode::OnComputed(const ChunkWork& work, TimeUs now) {
  Turn turn{now, {}};
  if (Status status = holding_->OnComputed(work, &turn); !status.ok()) Fail(status, &turn);
  return Done(std::move(turn));
}

ServerActions ServerNode::OnSaved(uint32_t generation, int64_t version, int attempt,
                                  const Result<SavedShardFile>& file, TimeUs now) {
  Turn turn{now, {}};
  if (generation == generation_.number) ReportSaved(version, attempt, file, &turn);
  return Done(std::move(turn));
}

void ServerNode::ReportSaved(int64_t version, int attempt, const Result<SavedShardFile>& file,
                             Turn* turn) {
  if (!file.ok())
    LOG(ERROR) << "could not save round " << version << ": " << file.status().message();
  TellRole(SavedHeader(version, attempt, file), turn);
}

ServerActions ServerNode::OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot,
                                     TimeUs now) {
  Turn turn{now, {}};
  if (generation != generation_.number || holding_->ready()) return {};
  if (Status status = holding_->OnRestored(snapshot, &turn); !status.ok()) {
    Fail(status.WithContext("checkpoint " + generation_.restore), &turn);
  } else if (holding_->ready()) {
    LOG(INFO) << "goes on from checkpoint " << generation_.restore;
  }
  return Done(std::move(turn));
}

ServerActions ServerNode::OnDiskAnswer(uint32_t generation, const DiskAnswer& answer, TimeUs now) {
  Turn turn{now, {}};
  // An evaluation that was kept is waited for in whichever generation.
  const bool kept = std::holds_alternative<EvaluationKept>(answer);
  if (kept || generation == generation_.number) role_->OnDiskAnswer(answer, &turn);
  return Done(std::move(turn));
}

ServerActions ServerNode::OnFilesAnswer(const FilesAnswer& answer, TimeUs now) {
  Turn turn{now, {}};
  if (disks_) disks_->OnAnswer(answer, &turn);
  return Done(std::move(turn));
}

ServerActions ServerNode::RequestStop(TimeUs now) {
  Turn turn{now, {}};
  role_->RequestStop(holding_->standing(), &turn);
  next_report_ = now;
  return Done(std::move(turn));
}

ServerActions ServerNode::Tick(TimeUs now) {
  Turn turn{now, {}};
  ticked_at_ = now;
  for (const PeerName& peer : roster_.RemoveUnless(
           [&](const PeerName&member, TimeUs seen) { return role_->Knows(member, seen, now); })) {
    holding_->Forget(peer);
  }
  holding_->Tick(&turn);
  if (disks_) disks_->Tick(&turn);
  if (now >= next_report_) {
    next_report_ = now + report_interval_;
    if (!Buggify(RareWay::kReportSkipped)) Report(&turn);
  }
  role_due_ = role_->Tick(holding_->standing(), &turn);
  holding_->TryEarly(&turn);
  return Done(std::move(turn));
}

TimeUs ServerNode::NextDeadline() const {
  const TimeUs next = std::min(role_due_, next_report_);
  return holding_->busy() || (disks_ && disks_->busy()) ? std::min(next, ticked_at_ + kTick) : next;
}

void ServerNode::SetTraffic(uint64_t bytes_sent, uint64_t bytes_received) {
  bytes_sent_ = bytes_sent;
  bytes_received_ = bytes_received;
}

void ServerNode::TellRole(wire::Header header, Turn* turn) {
  if (Status status = role_->OnMessage(ServerPeer(settings_.index), header, turn); !status.ok()) {
    LOG(ERROR) << status.message();
  }
}

void ServerNode::Report(Turn* turn) {
  next_report_ = turn->now + report_interval_;
  wire::Header header;
  header.set_type(wire::HEARTBEAT);
  wire::ServerReport* report = header.mutable_server_report();
  holding_->Describe(report);
  reported_ = {report->ready(), report->lost()};
  report->set_bytes_sent(bytes_sent_);
  report->set_bytes_received(bytes_received_);
  report->set_failure(failure_.message());
  report->set_failure_code(static_cast<uint32_t>(failure_.code()));
  TellRole(std::move(header), turn);
}

void ServerNode::Fail(const Status& status, Turn* turn) {
  LOG(ERROR) << status.message();
  failure_ = status;
  Report(turn);
}

ServerActions ServerNode::Done(Turn turn) {
  GoAlong(&turn);
  if (disks_) disks_->HoldBack(&turn);
  for (ServerAction& action : turn.actions) {
    auto* send = std::get_if<SendAction>(&action);
    if (auto* join = std::get_if<JoinAction>(&action)) send = &join->hello;
    if (auto* answer = std::get_if<AnswerFromDiskAction>(&action)) send = &answer->reply;
    if (send) {
      send->message.header.set_protocol(kProtocolVersion);
      send->message.header.set_job(settings_.identity.JobId());
      send->message.header.set_generation(generation_.number);
    } else if (auto* save = std::get_if<SaveAction>(&action)) {
      save->header = holding_->FileHeader(settings_.identity, generation_, save->snapshot.version);
    }
  }
  return std::move(turn.actions);
}

// The role is told at once of weights that are there now, or lost; that may take the job back.
void ServerNode::GoAlong(Turn* turn) {
  FollowRole(turn);
  if (reported_ == std::pair(holding_->ready(), holding_->lost())) return;
  Report(turn);
  FollowRole(turn);
}

// Goes along with what the role has come to: another generation, a version to save.
void ServerNode::FollowRole(Turn* turn) {
  const Generation former = std::exchange(generation_, role_->generation());
  if (generation_.number != former.number) {
    holding_->Enter(former, generation_, turn);
    if (disks_) disks_->Clear(turn);
    roster_.Clear();
    save_attempt_ = 0;
    next_report_ = turn->now;
  }
  if (generation_.choosing) return;
  if (failure_.ok()) {
    if (Status status = holding_->Build(generation_, turn); !status.ok()) Fail(status, turn);
  }
  SaveNow(turn);
  for (const PeerName& peer : roster_.TakeWaiting(!holding_->LacksPart(), turn->now)) {
    turn->Do(WelcomeTo(peer, generation_));
  }
}

// The coordinator wants a version saved without waiting for a round's end; once per attempt.
void ServerNode::SaveNow(Turn* turn) {
  const SaveOrder& order = role_->save_order();
  if (order.attempt == save_attempt_ || order.version < 0 || !holding_->ready()) return;
  save_attempt_ = order.attempt;
  const Status status = Buggify(RareWay::kSaveRefused) ? Aborted("chunk 0 is being computed")
                                                       : holding_->SaveNow(order, turn);
  if (!status.ok()) ReportSaved(order.version, order.attempt, status, turn);
}

}  // namespace kumo
