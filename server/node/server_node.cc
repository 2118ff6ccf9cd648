#include "server/node/server_node.h"

#include <algorithm>

#include <glog/logging.h>

#include "common/job/buggify.h"
#include "common/job/protocol.h"
#include "server/coordinator/coordinator.h"
#include "server/node/follower.h"
#include "server/protocol/messages.h"

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
      holding_(std::make_unique<ShardHost>(settings_.index, settings_.identity.servers,
                                           settings_.experiment, role_.get(), settings_.memory)),
      generation_(role_->generation()),
      // The coordinator is told at each of its ticks how far this server's shard is.
      report_interval_(
          settings_.index == 0 ? kTick : FromSeconds(settings_.experiment.cluster.heartbeat_s)) {
  if (!settings_.experiment.checkpoint.HasPrivateDisks()) return;
  disks_.emplace(settings_.index, settings_.identity.servers, settings_.experiment, role_.get());
}

ServerActions ServerNode::OnMessage(const PeerName& from, const Message& message, TimeUs now) {
  StepContext context{now, {}};
  const wire::Header& header = message.header;
  if (header.type() == wire::STATUS) {
    (void)role_->OnMessage(from, header, &context);
  } else if (header.type() == wire::HELLO) {
    OnHello(from, message, &context);
  } else if (header.job() != settings_.identity.JobId()) {
    // Another job's; its hello is answered, nothing else is.
  } else if (IsBetweenNeighbours(header)) {
    const bool ours = generation_.number != 0 && header.generation() == generation_.number;
    if (ours) holding_->OnFromNeighbour(from, message, &context);
  } else if (from == ServerPeer(0) && settings_.index != 0) {
    (void)role_->OnMessage(from, header, &context);
    const bool ours = header.generation() == generation_.number;
    if (ours && header.has_orders()) holding_->TryEarly(&context);  // leases, maybe
    if (disks_) disks_->OnFromServer0(message, ours, &context);
  } else {
    OnFromMember(from, message, &context);
  }
  return Done(std::move(context));
}

void ServerNode::OnHello(const PeerName& from, const Message& message, StepContext* context) {
  if (Buggify(RareWay::kHelloIgnored)) return;
  const wire::Hello& hello = message.header.hello();
  const bool worker = hello.role() == wire::Hello::WORKER;
  Status status = CheckHello(message.header, settings_.identity, holding_->spec());
  if (status.ok()) status = roster_.Check(from, hello);
  if (status.ok() && worker && !holding_->spec()) {
    status = holding_->LearnSpec(hello.spec(), settings_.restored);
    GoAlong(context);
  }
  if (!status.ok()) {
    context->Do(Refusal(from, status));
    return;
  }
  const Result<bool> joins = role_->OnHello(from, hello, context);
  GoAlong(context);
  if (!joins.ok()) {
    context->Do(Refusal(from, joins.status(), worker ? 0 : hello.incarnation()));
  } else if (!*joins) {
    return;
  } else if (generation_.choosing || (worker && holding_->LacksPart())) {
    roster_.LetWait(from, worker);
  } else {
    roster_.Saw(from, context->now);
    context->Do(WelcomeTo(from, generation_));
  }
}

void ServerNode::OnFromMember(const PeerName& from, const Message& message, StepContext* context) {
  const wire::Header& header = message.header;
  // No message counts of a generation that is over, or that this server is late for.
  const bool other_generation = header.generation() != generation_.number;
  if (!roster_.Has(from) || other_generation) {
    if (header.type() != wire::HEARTBEAT || generation_.number == 0) return;
    // It has to join first; or again, when it sees our generation. A member may have got a WELCOME
    // of an older one late.
    SendAction reply{from, {}};
    reply.message.header.set_type(other_generation ? wire::HEARTBEAT_REPLY : wire::GONE);
    context->Do(std::move(reply));
    return;
  }
  roster_.Saw(from, context->now);
  if (header.type() == wire::BYE) {
    holding_->Forget(from);
    roster_.Remove(from);
  }
  Status status;
  switch (header.type()) {
    case wire::HEARTBEAT:
    case wire::BYE:
    case wire::SAVED:
      status = role_->OnMessage(from, header, context);
      break;
    case wire::FETCH_FILE:
    case wire::FILE:
      if (disks_) disks_->OnMessage(from, message, context);
      break;
    default:
      status = holding_->OnMessage(from, message, context);
  }
  if (status.ok()) return;
  LOG_EVERY_T(WARNING, 1) << "refused a message of " << from << ": " << status.message();
  context->Do(Refusal(from, status));
}

ServerActions ServerNode::OnComputed(const ChunkWork& work, TimeUs now) {
  StepContext context{now, {}};
  if (Status status = holding_->OnComputed(work, &context); !status.ok()) Fail(status, &context);
  return Done(std::move(context));
}

ServerActions ServerNode::OnSaved(uint32_t generation, int64_t version, int attempt,
                                  const Result<SavedShardFile>& file, TimeUs now) {
  StepContext context{now, {}};
  if (generation == generation_.number) ReportSaved(version, attempt, file, &context);
  return Done(std::move(context));
}

void ServerNode::ReportSaved(int64_t version, int attempt, const Result<SavedShardFile>& file,
                             StepContext* context) {
  if (!file.ok())
    LOG(ERROR) << "could not save round " << version << ": " << file.status().message();
  TellRole(SavedHeader(version, attempt, file), context);
}

ServerActions ServerNode::OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot,
                                     TimeUs now) {
  StepContext context{now, {}};
  if (generation != generation_.number || holding_->ready()) return {};
  if (Status status = holding_->OnRestored(snapshot, &context); !status.ok()) {
    Fail(status.WithContext("checkpoint " + generation_.restore), &context);
  } else if (holding_->ready()) {
    LOG(INFO) << "goes on from checkpoint " << generation_.restore;
  }
  return Done(std::move(context));
}

ServerActions ServerNode::OnDiskAnswer(uint32_t generation, const DiskAnswer& answer, TimeUs now) {
  StepContext context{now, {}};
  // An evaluation that was kept is waited for in whichever generation.
  const bool kept = std::holds_alternative<EvaluationKept>(answer);
  if (kept || generation == generation_.number) role_->OnDiskAnswer(answer, &context);
  return Done(std::move(context));
}

ServerActions ServerNode::OnFilesAnswer(const FilesAnswer& answer, TimeUs now) {
  StepContext context{now, {}};
  if (disks_) disks_->OnAnswer(answer, &context);
  return Done(std::move(context));
}

ServerActions ServerNode::RequestStop(TimeUs now) {
  StepContext context{now, {}};
  role_->RequestStop(holding_->standing(), &context);
  next_report_ = now;
  return Done(std::move(context));
}

ServerActions ServerNode::Tick(TimeUs now) {
  StepContext context{now, {}};
  ticked_at_ = now;
  for (const PeerName& peer : roster_.RemoveUnless(
           [&](const PeerName&member, TimeUs seen) { return role_->Knows(member, seen, now); })) {
    holding_->Forget(peer);
  }
  holding_->Tick(&context);
  if (disks_) disks_->Tick(&context);
  if (now >= next_report_) {
    next_report_ = now + report_interval_;
    if (!Buggify(RareWay::kReportSkipped)) Report(&context);
  }
  role_due_ = role_->Tick(holding_->standing(), &context);
  holding_->TryEarly(&context);
  return Done(std::move(context));
}

TimeUs ServerNode::NextDeadline() const {
  const TimeUs next = std::min(role_due_, next_report_);
  return holding_->busy() || (disks_ && disks_->busy()) ? std::min(next, ticked_at_ + kTick) : next;
}

void ServerNode::SetTraffic(uint64_t bytes_sent, uint64_t bytes_received) {
  bytes_sent_ = bytes_sent;
  bytes_received_ = bytes_received;
}

void ServerNode::TellRole(wire::Header header, StepContext* context) {
  if (Status status = role_->OnMessage(ServerPeer(settings_.index), header, context);
      !status.ok()) {
    LOG(ERROR) << status.message();
  }
}

void ServerNode::Report(StepContext* context) {
  next_report_ = context->now + report_interval_;
  wire::Header header;
  header.set_type(wire::HEARTBEAT);
  wire::ServerReport* report = header.mutable_server_report();
  holding_->Describe(report);
  reported_ = {report->ready(), report->lost()};
  report->set_bytes_sent(bytes_sent_);
  report->set_bytes_received(bytes_received_);
  report->set_failure(failure_.message());
  report->set_failure_code(static_cast<uint32_t>(failure_.code()));
  TellRole(std::move(header), context);
}

void ServerNode::Fail(const Status& status, StepContext* context) {
  LOG(ERROR) << status.message();
  failure_ = status;
  Report(context);
}

ServerActions ServerNode::Done(StepContext context) {
  GoAlong(&context);
  if (disks_) disks_->HoldBack(&context);
  for (ServerAction& action : context.actions) {
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
  return std::move(context.actions);
}

// The role is told at once of weights that are there now, or lost; that may take the job back.
void ServerNode::GoAlong(StepContext* context) {
  FollowRole(context);
  if (reported_ == std::pair(holding_->ready(), holding_->lost())) return;
  Report(context);
  FollowRole(context);
}

// Goes along with what the role has come to: another generation, a version to save.
void ServerNode::FollowRole(StepContext* context) {
  const Generation former = std::exchange(generation_, role_->generation());
  if (generation_.number != former.number) {
    holding_->Enter(former, generation_, context);
    if (disks_) disks_->Clear(context);
    roster_.Clear();
    save_attempt_ = 0;
    next_report_ = context->now;
  }
  if (generation_.choosing) return;
  if (failure_.ok()) {
    if (Status status = holding_->Build(generation_, context); !status.ok()) Fail(status, context);
  }
  SaveNow(context);
  for (const PeerName& peer : roster_.TakeWaiting(!holding_->LacksPart(), context->now)) {
    context->Do(WelcomeTo(peer, generation_));
  }
}

// The coordinator wants a version saved without waiting for a round's end; once per attempt.
void ServerNode::SaveNow(StepContext* context) {
  const SaveOrder& order = role_->save_order();
  if (order.attempt == save_attempt_ || order.version < 0 || !holding_->ready()) return;
  save_attempt_ = order.attempt;
  const Status status = Buggify(RareWay::kSaveRefused) ? Aborted("chunk 0 is being computed")
                                                       : holding_->SaveNow(order, context);
  if (!status.ok()) ReportSaved(order.version, order.attempt, status, context);
}

}  // namespace kumo
