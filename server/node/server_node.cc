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

std::unique_ptr<Role> MakeRole(const ServerNodeSettings& settings, TimeUs now) {
  const Experiment& experiment = settings.experiment;
  if (settings.index == 0) {
    return std::make_unique<Coordinator>(CoordinatorStart{.experiment = experiment,
                                                          .identity = settings.identity,
                                                          .host = settings.process.host,
                                                          .generation = settings.generation,
                                                          .folder = settings.folder,
                                                          .finished = settings.finished},
                                         settings.restored, now);
  }
  return std::make_unique<Follower>(
      FollowerSettings{.index = settings.index,
                       .identity = settings.identity,
                       .process = settings.process,
                       .cluster = experiment.cluster,
                       .grace_s = experiment.checkpoint.grace_s,
                       .private_disk = experiment.checkpoint.HasPrivateDisks()},
      now);
}

}  // namespace

ServerNode::ServerNode(ServerNodeSettings settings, TimeUs now)
    : settings_(std::move(settings)),
      role_(MakeRole(settings_, now)),
      shard_host_(std::make_unique<ShardHost>(settings_.index, settings_.identity.servers,
                                              settings_.experiment, role_.get(), settings_.memory)),
      generation_(role_->generation()),
      // The coordinator gets a report of its own server's shard at each of its ticks.
      report_interval_(settings_.index == 0
                           ? kServerTick
                           : FromSeconds(settings_.experiment.cluster.heartbeat_s)) {
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
    // A message of another job. Only its hello is answered, with a refusal.
  } else if (IsBetweenNeighbours(header)) {
    const bool ours = generation_.number != 0 && header.generation() == generation_.number;
    if (ours) shard_host_->OnFromNeighbour(from, message, &context);
  } else if (from == ServerPeer(0) && settings_.index != 0) {
    (void)role_->OnMessage(from, header, &context);
    const bool ours = header.generation() == generation_.number;
    // The orders may confirm leases.
    if (ours && header.has_orders()) shard_host_->TryUnconfirmed(&context);
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
  Status status = CheckHello(message.header, settings_.identity, shard_host_->spec());
  if (status.ok()) status = peers_.Check(from, hello);
  if (status.ok() && worker && !shard_host_->spec()) {
    status = shard_host_->LearnSpec(hello.spec(), settings_.restored);
    FollowRoleAndReport(context);
  }
  if (!status.ok()) {
    context->Do(Refusal(from, status));
    return;
  }
  const Result<bool> joins = role_->OnHello(from, hello, context);
  FollowRoleAndReport(context);
  if (!joins.ok()) {
    context->Do(Refusal(from, joins.status(), worker ? 0 : hello.incarnation()));
  } else if (!*joins) {
    return;
  } else if (generation_.choosing || (worker && shard_host_->LacksPart())) {
    peers_.LetWait(from, worker);
  } else {
    peers_.Saw(from, context->now);
    context->Do(WelcomeTo(from, generation_));
  }
}

void ServerNode::OnFromMember(const PeerName& from, const Message& message, StepContext* context) {
  const wire::Header& header = message.header;
  // Messages of a generation that is over, or that this server has not entered yet, do not count.
  const bool other_generation = header.generation() != generation_.number;
  if (!peers_.Has(from) || other_generation) {
    if (header.type() != wire::HEARTBEAT || generation_.number == 0) return;
    // The sender has to join first; or again, when it sees this generation in the reply. A member
    // may have got a WELCOME of an older generation late.
    SendAction reply{from, {}};
    reply.message.header.set_type(other_generation ? wire::HEARTBEAT_REPLY : wire::GONE);
    context->Do(std::move(reply));
    return;
  }
  peers_.Saw(from, context->now);
  role_->OnHeard(from, header, context->now);
  if (header.type() == wire::BYE) {
    shard_host_->Forget(from);
    peers_.Remove(from);
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
      status = shard_host_->OnMessage(from, message, context);
  }
  if (status.ok()) return;
  LOG_EVERY_T(WARNING, 1) << "refused a message of " << from << ": " << status.message();
  context->Do(Refusal(from, status));
}

ServerActions ServerNode::OnComputed(const ChunkWork& work, TimeUs now) {
  StepContext context{now, {}};
  if (Status status = shard_host_->OnComputed(work, &context); !status.ok()) Fail(status, &context);
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
  if (!file.ok()) {
    LOG(INFO) << "could not save the checkpoint of round " << version << ": "
              << file.status().message();
  }
  TellRole(SavedHeader(version, attempt, file), context);
}

ServerActions ServerNode::OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot,
                                     TimeUs now) {
  StepContext context{now, {}};
  if (generation != generation_.number || shard_host_->ready()) return {};
  if (Status status = shard_host_->OnRestored(snapshot, &context); !status.ok()) {
    Fail(status.WithContext("checkpoint " + generation_.restore), &context);
  } else if (shard_host_->ready()) {
    LOG(INFO) << "goes on from checkpoint " << generation_.restore;
  }
  return Done(std::move(context));
}

ServerActions ServerNode::OnDiskAnswer(uint32_t generation, const DiskAnswer& answer, TimeUs now) {
  StepContext context{now, {}};
  // The coordinator waits for EvaluationKept whatever the generation.
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
  role_->RequestStop(shard_host_->status(), &context);
  next_report_ = now;
  return Done(std::move(context));
}

ServerActions ServerNode::Tick(TimeUs now) {
  StepContext context{now, {}};
  ticked_at_ = now;
  for (const PeerName& peer : peers_.RemoveUnless(
           [&](const PeerName&member, TimeUs seen) { return role_->Knows(member, seen, now); })) {
    shard_host_->Forget(peer);
  }
  shard_host_->Tick(&context);
  if (disks_) disks_->Tick(&context);
  if (now >= next_report_) {
    next_report_ = now + report_interval_;
    if (!Buggify(RareWay::kReportSkipped)) Report(&context);
  }
  role_due_ = role_->Tick(shard_host_->status(), &context);
  shard_host_->TryUnconfirmed(&context);
  return Done(std::move(context));
}

TimeUs ServerNode::NextDeadline() const {
  const TimeUs next = std::min(role_due_, next_report_);
  return shard_host_->busy() || (disks_ && disks_->busy())
             ? std::min(next, ticked_at_ + kServerTick)
             : next;
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
  shard_host_->Describe(report);
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

// The last steps of every call. The role comes first, since it may enter another generation, whose
// number the headers carry; then the private disks, which hold actions back that wait for files.
ServerActions ServerNode::Done(StepContext context) {
  FollowRoleAndReport(&context);
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
      save->header =
          shard_host_->FileHeader(settings_.identity, generation_, save->snapshot.version);
    }
  }
  return std::move(context.actions);
}

// Reports a shard that has become ready, or is lost, at once; the role may then enter another
// generation.
void ServerNode::FollowRoleAndReport(StepContext* context) {
  FollowRole(context);
  if (reported_ == std::pair(shard_host_->ready(), shard_host_->lost())) return;
  Report(context);
  FollowRole(context);
}

// Enters the role's generation, builds the shard, saves what the role orders, and welcomes peers.
void ServerNode::FollowRole(StepContext* context) {
  const Generation former = std::exchange(generation_, role_->generation());
  if (generation_.number != former.number) {
    shard_host_->Enter(former, generation_, context);
    if (disks_) disks_->Clear(context);
    peers_.Clear();
    save_attempt_ = 0;
    next_report_ = context->now;
  }
  if (generation_.choosing) return;
  if (failure_.ok()) {
    if (Status status = shard_host_->Build(generation_, context); !status.ok())
      Fail(status, context);
  }
  SaveNow(context);
  for (const PeerName& peer : peers_.TakeWaiting(!shard_host_->LacksPart(), context->now)) {
    context->Do(WelcomeTo(peer, generation_));
  }
}

// Follows an order to save now, once per attempt.
void ServerNode::SaveNow(StepContext* context) {
  const SaveOrder& order = role_->save_order();
  if (order.attempt == save_attempt_ || order.version < 0 || !shard_host_->ready()) return;
  save_attempt_ = order.attempt;
  const Status status = Buggify(RareWay::kSaveRefused) ? Aborted("chunk 0 is being computed")
                                                       : shard_host_->SaveNow(order, context);
  if (!status.ok()) ReportSaved(order.version, order.attempt, status, context);
}

}  // namespace kumo
