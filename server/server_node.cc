#include "server/server_node.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "common/job/checkpoint/continuation.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

constexpr size_t kMaxMembers = 4096;
constexpr char kStartElsewhere[] = "; choose another output directory, or checkpoint.resume=never";
constexpr TimeUs kResend = 500 * kMillisecond;
constexpr TimeUs kTick = 100 * kMillisecond;

bool IsBetweenNeighbours(const wire::Header& header) {
  const wire::Type type = header.type() == wire::ACK ? header.acknowledges() : header.type();
  return type == wire::REPLICATE || type == wire::FETCH_REPLICA;
}

const PeerName& CoordinatorPeer() {
  static const PeerName* const name = new PeerName(ServerPeer(0));
  return *name;
}

}  // namespace

ServerNode::ServerNode(ServerNodeSettings settings, TimeUs now)
    : settings_(std::move(settings)), heard_(now) {
  if (!coordinates()) return;
  coordinator_.emplace(settings_.identity, settings_.experiment, settings_.process.host,
                       settings_.generation, settings_.restored, now);
  generation_ = coordinator_->generation();
  since_ = coordinator_->since();
  start_version_ = coordinator_->start_version();
  restore_ = coordinator_->restore_name();
}

ServerActions ServerNode::OnMessage(const PeerName& from, const Message& message, TimeUs now) {
  ServerActions actions;
  const wire::Header& header = message.header;
  if (header.type() == wire::STATUS) {
    if (coordinates()) {
      SendAction reply{from, {}};
      reply.message.header.set_type(wire::STATUS_REPLY);
      *reply.message.header.mutable_job_status() = Describe(now);
      actions.push_back(std::move(reply));
    }
  } else if (header.type() == wire::HELLO) {
    OnHello(from, message, now, &actions);
  } else if (header.job() != settings_.identity.JobId()) {
    // Another job's; its hello is answered, nothing else is.
  } else if (IsBetweenNeighbours(header)) {
    OnFromNeighbour(from, message, now, &actions);
  } else if (!coordinates() && from == CoordinatorPeer()) {
    OnFromCoordinator(message, now, &actions);
  } else {
    OnFromMember(from, message, now, &actions);
  }
  return Done(std::move(actions), now);
}

void ServerNode::OnHello(const PeerName& from, const Message& message, TimeUs now,
                         ServerActions* actions) {
  const wire::Hello& hello = message.header.hello();
  if (Status status = CheckHello(message.header, settings_.identity, spec_); !status.ok()) {
    Refuse(from, status, actions);
    return;
  }
  const bool worker = hello.role() == wire::Hello::WORKER;
  if (!coordinates() && (!worker || generation_ == 0)) return;  // it asks again
  if (members_.size() >= kMaxMembers && !members_.contains(from)) {
    Refuse(from, ResourceExhausted("too many members"), actions);
    return;
  }
  if (worker && !spec_) {
    if (Status status = LearnSpec(hello.spec(), now, actions); !status.ok()) {
      Refuse(from, status, actions);
      return;
    }
  }
  if (coordinates()) {
    const Status status = coordinator_->OnHello(from, hello, now, actions);
    FollowCoordinator(now, actions);
    if (!status.ok()) {
      Refuse(from, status, actions, worker ? 0 : hello.incarnation());
      return;
    }
    if (coordinator_->choosing() || (worker && lacks_part())) {
      if (early_.size() < kMaxMembers) early_[from] = worker;
      return;
    }
  } else if (lacks_part()) {
    return;  // it would send what it has kept for us; it asks again
  }
  members_[from].seen = now;
  Welcome(from, actions);
}

// The first worker says what the job's network and data are.
Status ServerNode::LearnSpec(const wire::JobSpec& wire_spec, TimeUs now, ServerActions* actions) {
  KUMO_ASSIGN_OR_RETURN(JobSpec spec, ParseSpec(wire_spec));
  if (settings_.restored) {
    if (Status same = CheckSameNetworkAndData(*settings_.restored, spec); !same.ok()) {
      return FailedPrecondition(same.message() + kStartElsewhere);
    }
  }
  KUMO_ASSIGN_OR_RETURN(JobPlan plan, PlanFor(settings_.experiment, spec));
  if (settings_.restored && settings_.restored->version() > plan.rounds()) {
    return FailedPrecondition("checkpoint " + restore_ + " is of more rounds than the job's " +
                              std::to_string(plan.rounds()) + ": are the data others?" +
                              kStartElsewhere);
  }
  plan_ = std::move(plan);
  spec_ = std::move(spec);
  if (coordinates()) {
    coordinator_->OnSpec(*plan_, ShardMap(spec_->layout, settings_.identity.servers, ChunkBytes()),
                         *spec_);
    if (coordinator_->choosing()) return OkStatus();  // built when it is known with what
  }
  if (Status status = BuildShard(now, actions); !status.ok()) {
    spec_.reset();
    return status;
  }
  if (coordinates()) coordinator_->OnOwnReport(Report(), now, actions);
  return OkStatus();
}

// The shard of a generation, with what it starts from on its way.
Status ServerNode::BuildShard(TimeUs now, ServerActions* actions) {
  const Experiment& experiment = settings_.experiment;
  ShardSettings settings;
  settings.generation = since_;
  settings.index = settings_.index;
  settings.servers = settings_.identity.servers;
  settings.chunk_bytes = ChunkBytes();
  settings.carried_arrays = CarriedArrays(experiment, *spec_);
  settings.replicate = experiment.cluster.KeepsVersionsTwice();
  settings.round = {experiment.block, experiment.optimiser, experiment.schedule, experiment.sync};
  const auto observe = [this](int64_t version, const wire::Metrics& metrics, Turn* turn) {
    return coordinator_->OnVersion(version, metrics, turn->now, &turn->actions);
  };
  KUMO_ASSIGN_OR_RETURN(shard_, Shard::Make(settings, *plan_, spec_->layout, observe));
  const ShardMap& map = shard_->map();
  LOG(INFO) << "holds " << map.ServerBytes(settings_.index) << " of "
            << spec_->layout.size() * sizeof(float) << " bytes of weights";
  if (since_ != generation_) {
    // The job has not gone back: the next server has what this one is to hold.
    fetch_.emplace(ReplicaHolder(settings_.index, settings_.identity.servers),
                   map.ServerChunks(settings_.index));
    TickFetch(now, actions);
    return OkStatus();
  }
  ready_ = restore_.empty();
  next_heartbeat_ = now;  // tell the coordinator
  if (!ready_)
    actions->push_back(RestoreAction{generation_, restore_, map.ServerRange(settings_.index)});
  return OkStatus();
}

// What belongs to a generation that is over.
void ServerNode::LeaveGeneration() {
  shard_.reset();
  fetch_.reset();
  replica_.Clear();
  ready_ = lost_ = false;
}

// The coordinator wants a version saved without waiting for a round's end; once per attempt.
void ServerNode::SaveNow(const Checkpoints::Order& order, TimeUs now, ServerActions* actions) {
  if (order.attempt == save_attempt_ || order.version < 0 || !shard_ || !ready_) return;
  save_attempt_ = order.attempt;
  if (Status status =
          shard_->SaveNow(order.version, order.attempt, order.partial, TurnOf(now, actions).turn());
      !status.ok()) {
    ReportSaved(order.version, order.attempt, status, now, actions);
  }
}

// Server 0 goes along with what its coordinator has decided: the job goes back, or is saved.
void ServerNode::FollowCoordinator(TimeUs now, ServerActions* actions) {
  if (!coordinates()) return;
  if (coordinator_->generation() != generation_) {
    generation_ = coordinator_->generation();
    save_attempt_ = 0;
    members_.clear();
    if (coordinator_->since() == generation_) {
      LeaveGeneration();
    } else if (shard_) {
      shard_->ReplicateAgain(TurnOf(now, actions).turn());
    }
  }
  if (coordinator_->choosing()) return;
  since_ = coordinator_->since();
  if (shard_) {
    SaveNow(coordinator_->save_order(), now, actions);
  } else if (spec_) {
    start_version_ = coordinator_->start_version();
    restore_ = coordinator_->restore_name();
    if (Status status = BuildShard(now, actions); !status.ok()) Fail(status, now, actions);
  }
  std::erase_if(early_, [&](const auto& entry) {
    const auto& [peer, worker] = entry;
    if (worker && lacks_part()) return false;
    members_[peer].seen = now;
    Welcome(peer, actions);
    return true;
  });
}

// Another server: joins the newest generation. What it keeps it learns there.
void ServerNode::Rejoin(uint32_t generation, TimeUs now) {
  LOG(WARNING) << "generation " << generation_ << " is over";
  newest_generation_ = std::max(newest_generation_, generation);
  // Where versions are not kept twice, the job can only have gone back.
  if (!settings_.experiment.cluster.KeepsVersionsTwice()) LeaveGeneration();
  members_.clear();
  unsent_saves_.clear();
  generation_ = 0;
  next_hello_ = heard_ = now;
}

void ServerNode::OnWelcome(const wire::Header& header, TimeUs now, ServerActions* actions) {
  const wire::Welcome& welcome = header.welcome();
  if (generation_ != 0 || welcome.generation() < newest_generation_) return;
  generation_ = newest_generation_ = welcome.generation();
  start_version_ = welcome.version();
  restore_ = welcome.restore();
  next_heartbeat_ = now;
  save_attempt_ = 0;
  if (since_ != welcome.since()) LeaveGeneration();
  since_ = welcome.since();
  if (ready_) {
    shard_->ReplicateAgain(TurnOf(now, actions).turn());
    return;
  }
  if (!spec_) return;
  if (Status status = BuildShard(now, actions); !status.ok()) Fail(status, now, actions);
}

void ServerNode::OnFromCoordinator(const Message& message, TimeUs now, ServerActions* actions) {
  const wire::Header& header = message.header;
  if (header.type() == wire::REFUSED) {
    const wire::Refusal& refusal = header.refusal();
    if (refusal.incarnation() != 0 && refusal.incarnation() != settings_.process.incarnation)
      return;
    actions->push_back(ExitAction{
        ErrorFromPeer(refusal.code(), "server 0 refused this server: " + refusal.reason())});
    return;
  }
  heard_ = now;
  if (header.type() == wire::WELCOME) {
    OnWelcome(header, now, actions);
    return;
  }
  if (generation_ == 0 || header.generation() < generation_) return;
  if (header.generation() > generation_) {
    Rejoin(header.generation(), now);
    return;
  }
  switch (header.type()) {
    case wire::ACK:
      unsent_saves_.erase({header.round(), header.attempt()});
      return;
    case wire::GONE:
      Rejoin(generation_, now);
      return;
    case wire::HEARTBEAT_REPLY:
      if (header.has_refusal()) {
        LeaveJob(
            ErrorFromPeer(header.refusal().code(), "the job failed: " + header.refusal().reason()),
            actions);
      } else if (header.orders().finished()) {
        LeaveJob(
            header.orders().stopped() ? Unavailable("the job was stopped and saved") : OkStatus(),
            actions);
      } else if (leave_by_ > 0 && header.orders().released()) {
        actions->push_back(ExitAction{Unavailable("was told to leave, and everything is saved")});
      } else if (header.has_orders()) {
        const wire::Orders& orders = header.orders();
        SaveNow({orders.save_version(), orders.save_attempt(), orders.save_partial()}, now,
                actions);
      }
      return;
    default:
      return;
  }
}

void ServerNode::LeaveJob(Status status, ServerActions* actions) const {
  SendAction bye{CoordinatorPeer(), {}};
  bye.message.header.set_type(wire::BYE);
  actions->push_back(std::move(bye));
  actions->push_back(ExitAction{std::move(status)});
}

void ServerNode::OnFromMember(const PeerName& from, const Message& message, TimeUs now,
                              ServerActions* actions) {
  const auto member = members_.find(from);
  const wire::Header& header = message.header;
  // No message counts of a generation that is over, or that this server is late for.
  const bool other_generation = header.generation() != generation_;
  if (member == members_.end() || other_generation) {
    if (header.type() != wire::HEARTBEAT || generation_ == 0) return;
    // It has to join first; or again, when it sees our generation. A member may have got a WELCOME
    // of an older one late.
    SendAction reply{from, {}};
    reply.message.header.set_type(other_generation ? wire::HEARTBEAT_REPLY : wire::GONE);
    actions->push_back(std::move(reply));
    return;
  }
  member->second.seen = now;
  switch (header.type()) {
    case wire::HEARTBEAT:
    case wire::BYE:
    case wire::EVALUATED:
    case wire::SAVED:
      OnToCoordinator(from, message, now, actions);
      return;
    default:
      break;
  }
  if (!shard_ || !ready_) return;
  // Before the shard has version 0, which is sent on with what the coordinator knows.
  if (coordinates() && header.type() == wire::INITIALISE && header.chunk() == 0 &&
      header.has_origin()) {
    coordinator_->OnOrigin(header.origin(), actions);
  }
  if (Status status = shard_->OnMessage(from, message, TurnOf(now, actions).turn()); !status.ok()) {
    LOG_EVERY_T(WARNING, 1) << "refused a message of " << from << ": " << status.message();
    Refuse(from, status, actions);
  }
}

void ServerNode::OnToCoordinator(const PeerName& from, const Message& message, TimeUs now,
                                 ServerActions* actions) {
  const wire::Header& header = message.header;
  if (header.type() == wire::BYE) {
    if (shard_) shard_->Forget(from);
    members_.erase(from);
  }
  if (!coordinates()) {
    if (header.type() != wire::HEARTBEAT) return;
    SendAction reply{from, {}};  // only says that this server is alive
    reply.message.header.set_type(wire::HEARTBEAT_REPLY);
    actions->push_back(std::move(reply));
    return;
  }
  Status status;
  switch (header.type()) {
    case wire::HEARTBEAT:
      coordinator_->OnHeartbeat(from, header, now, actions);
      break;
    case wire::BYE:
      coordinator_->OnBye(from, header, now, actions);
      break;
    case wire::EVALUATED:
      status = coordinator_->OnEvaluated(from, header, now, actions);
      break;
    default:
      for (int i = 1; i < settings_.identity.servers; ++i) {
        if (from == ServerPeer(i)) status = coordinator_->OnSaved(i, header, now, actions);
      }
  }
  if (!status.ok()) Refuse(from, status, actions);
}

ServerActions ServerNode::OnComputed(const ChunkWork& work, TimeUs now) {
  ServerActions actions;
  if (!shard_ || work.generation != shard_->generation()) return actions;
  if (Status status = shard_->OnComputed(work, TurnOf(now, &actions).turn()); !status.ok()) {
    Fail(status, now, &actions);
  }
  return Done(std::move(actions), now);
}

ServerActions ServerNode::OnSaved(uint32_t generation, int64_t version, int attempt,
                                  const Result<checkpoint::File>& file, TimeUs now) {
  ServerActions actions;
  if (generation == generation_) ReportSaved(version, attempt, file, now, &actions);
  return Done(std::move(actions), now);
}

void ServerNode::ReportSaved(int64_t version, int attempt, const Result<checkpoint::File>& file,
                             TimeUs now, ServerActions* actions) {
  Message message;
  message.header.set_type(wire::SAVED);
  message.header.set_round(version);
  message.header.set_attempt(attempt);
  wire::SavedFile* saved = message.header.mutable_saved_file();
  if (file.ok()) {
    saved->set_name(file->name());
    saved->set_bytes(file->bytes());
    saved->set_crc32c(file->crc32c());
  } else {
    saved->set_failure(file.status().message());
    LOG(ERROR) << "could not save round " << version << ": " << file.status().message();
  }
  if (coordinates()) {
    // Our own word needs no acknowledgement.
    if (Status status = coordinator_->OnSaved(0, message.header, now, actions); !status.ok()) {
      LOG(ERROR) << status.message();
    }
  } else {
    unsent_saves_[{version, attempt}] = {message, now + kResend};
    actions->push_back(SendAction{CoordinatorPeer(), std::move(message)});
  }
}

ServerActions ServerNode::OnRestored(uint32_t generation, const Result<ShardSnapshot>& snapshot,
                                     TimeUs now) {
  ServerActions actions;
  if (!shard_ || generation != generation_ || ready_) return actions;
  Status status =
      snapshot.ok() ? shard_->Restore(*snapshot, TurnOf(now, &actions).turn()) : snapshot.status();
  if (status.ok()) {
    ready_ = true;
    next_heartbeat_ = now;  // tell the coordinator
    LOG(INFO) << "goes on from checkpoint " << restore_;
    if (coordinates()) coordinator_->OnOwnReport(Report(), now, &actions);
  } else {
    Fail(status.WithContext("checkpoint " + restore_), now, &actions);
  }
  return Done(std::move(actions), now);
}

void ServerNode::Fail(const Status& status, TimeUs now, ServerActions* actions) {
  LOG(ERROR) << status.message();
  failure_ = status;
  next_heartbeat_ = 0;  // tell the coordinator at once
  if (coordinates()) coordinator_->OnOwnReport(Report(), now, actions);
}

ServerActions ServerNode::OnCommitted(uint32_t generation, int64_t version, const Status& status,
                                      TimeUs now) {
  ServerActions actions;
  if (generation == generation_) coordinator_->OnCommitted(version, status, now, &actions);
  return Done(std::move(actions), now);
}

ServerActions ServerNode::OnChosen(uint32_t generation,
                                   const Result<std::optional<checkpoint::Manifest>>& chosen,
                                   TimeUs now) {
  ServerActions actions;
  if (generation == generation_) coordinator_->OnChosen(chosen, now, &actions);
  return Done(std::move(actions), now);
}

ServerActions ServerNode::OnReserved(uint32_t generation, TimeUs now) {
  if (generation == generation_) coordinator_->OnReserved();
  return Done({}, now);
}

ServerActions ServerNode::RequestStop(TimeUs now) {
  ServerActions actions;
  if (coordinates()) {
    coordinator_->RequestStop();
  } else if (!ready_) {
    actions.push_back(ExitAction{Unavailable("was told to leave before it held anything")});
  } else {
    leave_by_ = now + FromSeconds(settings_.experiment.checkpoint.grace_s);
    next_heartbeat_ = now;
  }
  return Done(std::move(actions), now);
}

ServerActions ServerNode::Tick(TimeUs now) {
  ServerActions actions;
  ticked_at_ = now;
  const TimeUs forget_after = 2 * FromSeconds(settings_.experiment.cluster.suspect_after_s);
  for (auto member = members_.begin(); member != members_.end();) {
    const bool stays = coordinates() ? coordinator_->Knows(member->first)
                                     : now - member->second.seen <= forget_after;
    if (stays) {
      ++member;
      continue;
    }
    if (shard_) shard_->Forget(member->first);
    member = members_.erase(member);
  }
  TickFetch(now, &actions);
  if (shard_) shard_->Tick(TurnOf(now, &actions).turn());
  if (coordinates()) {
    if (shard_) coordinator_->OnOwnReport(Report(), now, &actions);
    coordinator_->Tick(now, &actions);
  } else {
    TickFollower(now, &actions);
  }
  return Done(std::move(actions), now);
}

void ServerNode::TickFollower(TimeUs now, ServerActions* actions) {
  const auto& cluster = settings_.experiment.cluster;
  // Server 0 may be started again, and the job goes on.
  const double limit = newest_generation_ == 0 ? cluster.join_timeout_s : cluster.stall_timeout_s;
  if (now - heard_ > FromSeconds(limit)) {
    actions->push_back(ExitAction{Unavailable("server 0 does not answer since " +
                                              std::to_string((now - heard_) / kSecond) + " s")});
    return;
  }
  if (leave_by_ > 0 && now > leave_by_) {
    actions->push_back(ExitAction{Unavailable("was told to leave; no round was saved in time")});
    return;
  }
  if (generation_ == 0) {
    if (now < next_hello_) return;
    next_hello_ = now + kResend;
    SendAction send{CoordinatorPeer(), {}};
    send.message.header.set_type(wire::HELLO);
    wire::Hello* hello = send.message.header.mutable_hello();
    *hello = HelloOf(settings_.identity, settings_.process);
    hello->set_role(wire::Hello::SERVER);
    hello->set_server_index(settings_.index);
    hello->set_since(ready_ ? since_ : 0);
    hello->set_holds_replica(HoldsReplica());
    actions->push_back(std::move(send));
    return;
  }
  if (now >= next_heartbeat_) {
    next_heartbeat_ = now + FromSeconds(cluster.heartbeat_s);
    SendAction send{CoordinatorPeer(), {}};
    send.message.header.set_type(wire::HEARTBEAT);
    *send.message.header.mutable_server_report() = Report();
    actions->push_back(std::move(send));
  }
  for (auto& [key, save] : unsent_saves_) {
    if (now < save.resend_at) continue;
    save.resend_at = now + kResend;
    actions->push_back(SendAction{CoordinatorPeer(), save.message});
  }
}

TimeUs ServerNode::NextDeadline() const {
  if (coordinates()) return coordinator_->NextDeadline();
  TimeUs next = generation_ == 0 ? next_hello_ : next_heartbeat_;
  if (fetch_ || (shard_ && shard_->replicating())) next = std::min(next, ticked_at_ + kTick);
  for (const auto& [key, save] : unsent_saves_) next = std::min(next, save.resend_at);
  return next;
}

wire::JobStatus ServerNode::Describe(TimeUs now) const { return coordinator_->Describe(now); }

std::string ServerNode::WaitsForProcesses(TimeUs now) const {
  if (coordinates()) return coordinator_->WaitsForProcesses(now);
  if (generation_ != 0) return "";
  const auto& addresses = settings_.experiment.cluster.servers;
  return addresses.empty() ? "server 0" : "server 0 at " + addresses[0];
}

void ServerNode::SetTraffic(uint64_t bytes_sent, uint64_t bytes_received) {
  bytes_sent_ = bytes_sent;
  bytes_received_ = bytes_received;
}

wire::ServerReport ServerNode::Report() const {
  wire::ServerReport report;
  report.set_ready(ready_);
  report.set_lost(lost_);
  report.set_leaving(leave_by_ > 0);
  report.set_bytes_sent(bytes_sent_);
  report.set_bytes_received(bytes_received_);
  if (shard_) shard_->Describe(&report);
  report.set_failure(failure_.message());
  report.set_failure_code(static_cast<uint32_t>(failure_.code()));
  return report;
}

void ServerNode::Welcome(const PeerName& to, ServerActions* actions) {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::WELCOME);
  wire::Welcome* welcome = reply.message.header.mutable_welcome();
  welcome->set_generation(generation_);
  welcome->set_version(start_version_);
  welcome->set_restore(restore_);
  welcome->set_since(since_);
  actions->push_back(std::move(reply));
}

void ServerNode::Refuse(const PeerName& to, const Status& status, ServerActions* actions,
                        uint64_t incarnation) {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::REFUSED);
  reply.message.header.mutable_refusal()->set_code(static_cast<uint32_t>(status.code()));
  reply.message.header.mutable_refusal()->set_reason(status.message());
  reply.message.header.mutable_refusal()->set_incarnation(incarnation);
  actions->push_back(std::move(reply));
}

ServerActions ServerNode::Done(ServerActions actions, TimeUs now) {
  FollowCoordinator(now, &actions);
  for (ServerAction& action : actions) {
    if (auto* send = std::get_if<SendAction>(&action)) {
      send->message.header.set_protocol(kProtocolVersion);
      send->message.header.set_job(settings_.identity.JobId());
      send->message.header.set_generation(generation_);
    } else if (auto* save = std::get_if<SaveAction>(&action)) {
      save->header = FileHeader(save->snapshot.version);
    }
  }
  return actions;
}

ShardFileHeader ServerNode::FileHeader(int64_t version) const {
  ShardFileHeader header;
  header.job = settings_.identity.JobId();
  header.experiment_hash = settings_.identity.experiment_hash;
  header.fingerprint = spec_->layout.fingerprint();
  header.version = version;
  header.generation = generation_;
  header.shard = static_cast<uint32_t>(settings_.index);
  header.shards = static_cast<uint32_t>(settings_.identity.servers);
  return header;
}

}  // namespace kumo
