#include "server/coordinator.h"

#include <algorithm>
#include <cmath>

#include <glog/logging.h>

namespace kumo {
namespace {

// How long a server keeps telling the others that the job is over before it leaves itself.
constexpr TimeUs kFarewell = 3 * kSecond;
constexpr size_t kMaxWorkers = 4096;
// Moving leases costs a checkpoint: only where rounds become so much shorter, and not often.
constexpr double kWorthSpreading = 1.25;
constexpr TimeUs kSpreadPause = 60 * kSecond;
// A round straggles when it takes so many times what it should, and at least so long.
constexpr double kStraggling = 1.5;
constexpr double kLeastStraggling = 1000;  // milliseconds

TimeUs Seconds(double seconds) { return static_cast<TimeUs>(seconds * 1e6); }

std::string InSeconds(TimeUs time) { return std::to_string(time / kSecond) + " s"; }

double SecondsSince(TimeUs then, TimeUs now) { return static_cast<double>(now - then) * 1e-6; }

void AcknowledgeTo(const PeerName& to, const wire::Header& header, ServerActions* actions) {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::ACK);
  reply.message.header.set_acknowledges(header.type());
  reply.message.header.set_round(header.round());
  reply.message.header.set_partition(header.partition());
  actions->push_back(std::move(reply));
}

}  // namespace

Coordinator::Coordinator(const JobIdentity& identity, const Experiment& experiment,
                         const std::string& host, uint32_t generation,
                         std::optional<checkpoint::Manifest> restored, TimeUs now)
    : identity_(identity),
      experiment_(experiment),
      generation_(generation),
      restored_(std::move(restored)),
      started_(now),
      waiting_since_(now),
      ticked_at_(now - kTick),
      heard_at_(now),
      members_(identity.servers, host),
      leases_(experiment.sync.partitions),
      checkpoints_(experiment.checkpoint, restored_ ? restored_->version() : -1, now) {
  if (!restored_) return;
  start_version_ = restored_->version();
  elapsed_before_ = restored_->progress().elapsed_seconds();
  ledger_ = EpochLedger(restored_->progress());
}

std::string Coordinator::restore_name() const { return restored_ ? restored_->name() : ""; }

void Coordinator::OnSpec(const JobPlan& plan, const ShardMap& map, const JobSpec& spec) {
  plan_ = plan;
  map_ = map;
  spec_ = spec;
  ledger_.Start(plan, start_version_);
  if (auto schedule =
          Schedule::Make(experiment_.schedule, spec.train_samples, experiment_.job.epochs);
      schedule.ok()) {
    schedule_ = *schedule;
  }
}

Status Coordinator::OnServerHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                                  ServerActions* actions) {
  ServerMember& server = members_.servers[hello.server_index()];
  const std::string who = "server " + std::to_string(hello.server_index()) + " on " + hello.host();
  if (replaced_servers_.contains({hello.server_index(), hello.incarnation()})) {
    return FailedPrecondition("another process has taken the place of " + who);
  }
  if (!server.peer.empty() && server.hello.incarnation() != hello.incarnation()) {
    if (replaced_servers_.size() < kMaxWorkers) {
      replaced_servers_.emplace(hello.server_index(), server.hello.incarnation());
    }
    server.report.Clear();
    if (phase_ == Phase::kTraining) GoBack(who + " was started again", now, actions);
  }
  server.peer = from;
  server.hello = hello;
  server.seen = now;
  return OkStatus();
}

Status Coordinator::OnHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                            ServerActions* actions) {
  heard_at_ = now;
  if (hello.role() == wire::Hello::SERVER) return OnServerHello(from, hello, now, actions);
  if (members_.workers.size() >= kMaxWorkers && !members_.workers.contains(from)) {
    return ResourceExhausted("the job has " + std::to_string(kMaxWorkers) + " workers already");
  }
  // The same worker started again: what its former process held is free at once.
  const std::string taken = "another process has joined under the name " + hello.name();
  if (replaced_.contains(from)) return FailedPrecondition(taken);
  const auto former =
      std::find_if(members_.workers.begin(), members_.workers.end(), [&](const auto& entry) {
        return entry.first != from && entry.second.hello.name() == hello.name();
      });
  if (former != members_.workers.end()) {
    // A hello may come late, from a process that is dead by now.
    if (former->second.hello.started_ms() > hello.started_ms()) return FailedPrecondition(taken);
    const PeerName peer = former->first;
    Lose(peer, "it was started again", now, actions);
    // Where both are alive, two processes were given one name.
    SendAction refuse{peer, {}};
    refuse.message.header.set_type(wire::REFUSED);
    refuse.message.header.mutable_refusal()->set_code(
        static_cast<uint32_t>(StatusCode::kFailedPrecondition));
    refuse.message.header.mutable_refusal()->set_reason(taken);
    if (replaced_.size() < kMaxWorkers) replaced_.insert(peer);
    actions->push_back(std::move(refuse));
  }
  const bool known = members_.workers.contains(from);
  WorkerMember& worker = members_.workers[from];
  worker.hello = hello;
  worker.seen = now;
  if (known) return OkStatus();
  LOG(INFO) << hello.name() << " on " << hello.host() << " (pid " << hello.pid() << ", "
            << hello.device() << ") joined";
  if (phase_ == Phase::kTraining) {
    spread_wanted_ = true;
    LeaseOrphans(actions);
  }
  return OkStatus();
}

void Coordinator::OnHeartbeat(const PeerName& from, const wire::Header& header, TimeUs now,
                              ServerActions* actions) {
  heard_at_ = now;
  if (header.has_server_report()) {
    for (size_t i = 1; i < members_.servers.size(); ++i) {
      if (members_.servers[i].peer != from) continue;
      members_.servers[i].told_end = Over();
      OnServerReport(static_cast<int>(i), header.server_report(), now, actions);
      SendOrders(from, actions);
    }
    return;
  }
  WorkerMember* const found = members_.Find(from);
  if (!found) {
    // Given up while it was silent: it has to join again.
    SendAction reply{from, {}};
    reply.message.header.set_type(wire::GONE);
    actions->push_back(std::move(reply));
    return;
  }
  WorkerMember& worker = *found;
  worker.seen = now;
  worker.OnReport(header.worker_report());
  worker.told_end = Over();
  if (worker.report.leaving() && !worker.leaving) {
    worker.leaving = true;
    LOG(INFO) << worker.Name() << " was told to leave";
    LetGo(from, actions);
  }
  SendOrders(from, actions);
}

void Coordinator::OnOwnReport(const wire::ServerReport& report, TimeUs now,
                              ServerActions* actions) {
  OnServerReport(0, report, now, actions);
}

void Coordinator::OnServerReport(int index, const wire::ServerReport& report, TimeUs now,
                                 ServerActions* actions) {
  ServerMember& server = members_.servers[index];
  server.seen = now;
  server.report = report;
  const std::string name = "server " + std::to_string(index);
  if (server.silent) LOG(WARNING) << name << " is back";
  server.silent = false;
  if (!report.failure().empty()) {
    Fail(ErrorFromPeer(report.failure_code(), name + ": " + report.failure()), actions);
  } else if (phase_ == Phase::kTraining && !report.ready()) {
    GoBack(name + " has lost its part of the weights", now, actions);
  }
}

void Coordinator::OnBye(const PeerName& from, const wire::Header& header, TimeUs now,
                        ServerActions* actions) {
  const WorkerMember* const worker = members_.Find(from);
  if (!worker) return;
  const wire::WorkerReport& report = header.worker_report();
  const std::string who = worker->Name();
  if (static_cast<StatusCode>(report.failure_code()) == StatusCode::kFailedPrecondition) {
    // A retry cannot help, on another worker neither.
    Fail(FailedPrecondition(who + ": " + report.failure()), actions);
  }
  if (report.handed_over()) leases_.HandedOver(from);
  Lose(from, report.failure().empty() ? "it left" : report.failure(), now, actions);
}

void Coordinator::Lose(const PeerName& peer, const std::string& why, TimeUs now,
                       ServerActions* actions) {
  const WorkerMember* const worker = members_.Find(peer);
  if (!worker) return;
  const std::string who = worker->Name();
  members_.workers.erase(peer);
  const bool lost = leases_.Lose(peer, OldestOpenRound());
  if (!Over()) {
    LOG(WARNING) << who << (lost ? " is lost: " : " has left: ") << why;
  }
  if (phase_ != Phase::kTraining || !lost) return;
  if (first_loss_.empty()) first_loss_ = who + ": " + why;
  if (experiment_.cluster.recovery == "exact" && CarriesState()) {
    GoBack(who + " is lost with what its partitions carried: " + why, now, actions);
    return;
  }
  LeaseOrphans(actions);
}

// A worker was told to leave. Where its partitions carry nothing, another one computes the blocks
// under way again; else they move when a round has been saved.
void Coordinator::LetGo(const PeerName& peer, ServerActions* actions) {
  if (phase_ != Phase::kTraining || leases_.Count(peer) == 0) return;
  if (CarriesState()) {
    spread_wanted_ = true;
    return;
  }
  leases_.Lose(peer, OldestOpenRound());
  LeaseOrphans(actions);
}

bool Coordinator::CarriesState() const { return StateSlots(experiment_, spec_) > 0; }

void Coordinator::LeaseOrphans(ServerActions* actions) {
  if (static_cast<int>(members_.workers.size()) >= experiment_.cluster.min_workers) {
    leases_.LeaseOrphans(members_.Takers(leases_), OldestOpenRound());
  }
  SendOrdersToAll(actions);
}

// The job goes on from the newest good checkpoint, in a generation of its own.
void Coordinator::GoBack(const std::string& why, TimeUs now, ServerActions* actions) {
  if (phase_ != Phase::kTraining) return;
  LOG(WARNING) << why << ": the job goes back to its last checkpoint";
  ++generation_;
  choosing_ = true;
  went_back_why_ = why;
  phase_ = Phase::kWaiting;
  waiting_since_ = now;
  actions->push_back(ChooseCheckpointAction{generation_, version_});
  version_ = -1;
  leases_.Clear();
  checkpoints_.GoBack(checkpoints_.last(), now);
  spread_wanted_ = false;
  spread_at_ = stop_at_ = -1;
  for (ServerMember& server : members_.servers) server.report.Clear();
  SendOrdersToAll(actions);  // whoever sees the new generation joins it
}

void Coordinator::OnChosen(const Result<std::optional<checkpoint::Manifest>>& chosen, TimeUs now,
                           ServerActions* actions) {
  if (!choosing_) return;
  choosing_ = false;
  if (!chosen.ok()) {
    Fail(chosen.status().WithContext(went_back_why_), actions);
    return;
  }
  restored_ = *chosen;
  start_version_ = restored_ ? restored_->version() : 0;
  checkpoints_.GoBack(restored_ ? start_version_ : -1, now);
  ledger_ = restored_ ? EpochLedger(restored_->progress()) : EpochLedger();
  ledger_.Start(*plan_, start_version_);
  waiting_since_ = now;
  LOG(WARNING) << "generation " << generation_ << " goes back to round " << start_version_ << ": "
               << went_back_why_;
  actions->push_back(WentBackAction{start_version_, went_back_why_});
}

// No shard has closed this round in all its chunks before: a lower bound, since reports are late.
int64_t Coordinator::OldestOpenRound() const {
  const int64_t version = std::max(version_, start_version_);
  return std::max(members_.OldestOpenRound(version), start_version_);
}

// When a round takes much longer than it should, whoever is done with it computes what is missing
// too: the first contribution counts, and both are the same as long as partitions carry nothing.
void Coordinator::HelpStragglers(TimeUs now, ServerActions* actions) {
  const std::vector<LeaseTable::Taker> takers = members_.Takers(leases_);
  const double expected_ms = leases_.TypicalRound(takers);
  if (CarriesState() || expected_ms <= 0) return;
  const double open_ms = static_cast<double>(now - moved_at_) * 1e-3;
  if (open_ms < std::max(kLeastStraggling, kStraggling * expected_ms)) return;
  // At the end it is the last evaluation that may be waited for.
  const std::vector<int> missing = version_ == plan_->rounds()
                                       ? ledger_.Unevaluated(plan_->settings().partitions)
                                       : members_.MissingPartitions(version_);
  if (leases_.Help(missing, version_, takers)) SendOrdersToAll(actions);
}

void Coordinator::SendOrders(const PeerName& to, ServerActions* actions) {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::HEARTBEAT_REPLY);
  header.set_round(version_);
  if (phase_ == Phase::kFailed) {
    header.mutable_refusal()->set_code(static_cast<uint32_t>(failure_.code()));
    header.mutable_refusal()->set_reason(failure_.message());
  }
  wire::Orders* orders = header.mutable_orders();
  orders->set_finished(phase_ == Phase::kFinished);
  orders->set_stopped(phase_ == Phase::kFinished && stop_at_ >= 0);
  for (const ServerMember& server : members_.servers) {
    if (server.peer != to) continue;
    orders->set_save_version(save_order().version);
    orders->set_save_attempt(save_order().attempt);
    orders->set_save_partial(save_order().partial);
    orders->set_released(server.leaves_at >= 0 && checkpoints_.last() >= server.leaves_at);
  }
  if (const WorkerMember* worker = members_.Find(to)) {
    orders->set_released(worker->leaving && leases_.Count(to) == 0);
  }
  if (phase_ == Phase::kTraining) {
    for (size_t p = 0; p < leases_.leases().size(); ++p) {
      const LeaseTable::Lease& lease = leases_.leases()[p];
      if (lease.worker != to) continue;
      wire::Orders::Lease* order = orders->add_leases();
      order->set_partition(static_cast<int32_t>(p));
      order->set_from(lease.from);
      order->set_handed_over(!lease.before.empty());
    }
    for (const auto& [partition, help] : leases_.helpers()) {
      if (help.worker != to) continue;
      wire::Orders::Lease* order = orders->add_leases();
      order->set_partition(partition);
      order->set_from(help.round);
      order->set_until(help.round + 1);
    }
  }
  actions->push_back(std::move(reply));
}

void Coordinator::SendOrdersToAll(ServerActions* actions) {
  for (const auto& [peer, worker] : members_.workers) SendOrders(peer, actions);
  for (size_t i = 1; i < members_.servers.size(); ++i) {
    if (!members_.servers[i].peer.empty()) SendOrders(members_.servers[i].peer, actions);
  }
}

Directive Coordinator::OnVersion(int64_t version, const wire::Metrics& metrics, TimeUs now,
                                 ServerActions* actions) {
  version_ = version;
  moved_at_ = now;
  if (metrics.samples() > 0) {
    actions->push_back(RoundClosedAction{version - 1, metrics});
    ledger_.AddRound(*plan_, version, metrics);
  }
  checkpoints_.SetProgress(version, Progress(now));
  leases_.Settle(version);
  if (spread_at_ >= 0 && version >= spread_at_) {
    spread_at_ = -1;
    if (version != stop_at_) {
      leases_.Spread(members_.Takers(leases_), version);
      SendOrdersToAll(actions);
    }
  }

  Directive directive;
  if (version >= plan_->rounds()) return directive;
  // Of the round that starts now; it ends with version + 1.
  directive.stop = stop_requested_ && stop_at_ < 0 && version + 1 < plan_->rounds();
  if (directive.stop) stop_at_ = version + 1;
  if (SpreadIsDue(now)) spread_at_ = version + 1;
  directive.move = spread_at_ == version + 1;
  directive.save = SaveIsDue(version, now) || directive.stop || directive.move;
  if (directive.save) checkpoints_.Begin(version + 1, now);
  return directive;
}

bool Coordinator::SpreadIsDue(TimeUs now) {
  if (phase_ != Phase::kTraining || spread_at_ >= 0) return false;
  const bool uneven = now - spread_last_ > kSpreadPause &&
                      leases_.Imbalance(members_.Takers(leases_)) > kWorthSpreading;
  if (!spread_wanted_ && !uneven) return false;
  spread_wanted_ = false;
  spread_last_ = now;
  return true;
}

bool Coordinator::SaveIsDue(int64_t version, TimeUs now) {
  const int64_t next = version + 1;
  if (next == plan_->rounds()) return true;
  bool leaves = false;
  for (ServerMember& server : members_.servers) {
    if (!server.report.leaving() || server.leaves_at >= 0) continue;
    server.leaves_at = next;
    leaves = true;
  }
  if (leaves) return true;
  return checkpoints_.IsDue(next, now);
}

checkpoint::Progress Coordinator::Progress(TimeUs now) const {
  checkpoint::Progress progress = ledger_.progress();
  progress.set_elapsed_seconds(ElapsedSeconds(now));
  return progress;
}

Status Coordinator::OnEvaluated(const PeerName& from, const wire::Header& header, TimeUs now,
                                ServerActions* actions) {
  const int64_t version = header.round();
  if (!plan_ || version > version_ || plan_->EvaluatedEpoch(version) < 0 ||
      header.partition() < 0 || header.partition() >= plan_->settings().partitions) {
    return InvalidArgument("an evaluation of version " + std::to_string(version) + ", partition " +
                           std::to_string(header.partition()));
  }
  AcknowledgeTo(from, header, actions);
  moved_at_ = now;
  if (const auto epoch =
          ledger_.AddEvaluation(*plan_, version, header.partition(), header.metrics())) {
    actions->push_back(EpochEvaluatedAction{epoch->epoch, epoch->train, epoch->validation});
    FinishIfDone(now, actions);
  }
  return OkStatus();
}

int Coordinator::ServersWithChunks() const {
  int count = 0;
  for (int s = 0; s < map_->servers(); ++s) count += map_->FirstChunk(s) < map_->FirstChunk(s + 1);
  return count;
}

Status Coordinator::OnSaved(int server, const wire::Header& header, TimeUs now,
                            ServerActions* actions) {
  if (server > 0) AcknowledgeTo(members_.servers[server].peer, header, actions);
  const int64_t version = header.round();
  if (!checkpoints_.Has(version)) return OkStatus();
  const wire::SavedFile& saved = header.saved_file();
  if (!saved.failure().empty()) {
    OnSaveFailed(version, "server " + std::to_string(server) + ": " + saved.failure(), now,
                 actions);
    return OkStatus();
  }
  checkpoint::File file;
  file.set_name(saved.name());
  file.set_bytes(saved.bytes());
  file.set_crc32c(saved.crc32c());
  auto manifest = checkpoints_.Add(version, server, file, ServersWithChunks());
  if (!manifest) return OkStatus();
  manifest->set_job_name(identity_.job_name);
  manifest->set_experiment_hash(identity_.experiment_hash);
  manifest->set_experiment_text(identity_.experiment_text);
  manifest->set_fingerprint(spec_.layout.fingerprint());
  manifest->set_generation(generation_);
  actions->push_back(CommitAction{*std::move(manifest)});
  return OkStatus();
}

void Coordinator::OnCommitted(int64_t version, const Status& status, TimeUs now,
                              ServerActions* actions) {
  if (!status.ok()) {
    OnSaveFailed(version, status.message(), now, actions);
    return;
  }
  checkpoints_.Committed(version);
  LOG(INFO) << "checkpoint of round " << version << " is complete";
  FinishIfDone(now, actions);
  if (ending_ && version == save_order().version) {
    Fail(Status(ending_->code(), ending_->message() + "; round " + std::to_string(version) +
                                     " is saved: start the job again to go on from there"),
         actions);
  }
}

// Training goes on without that checkpoint; only the last one is worth waiting for the disk.
void Coordinator::OnSaveFailed(int64_t version, const std::string& why, TimeUs now,
                               ServerActions* actions) {
  checkpoints_.Failed(version);
  LOG(ERROR) << "checkpoint of round " << version << " failed: " << why
             << "; the last good one is of round " << checkpoints_.last();
  if (ending_) {
    Fail(*ending_, actions);
  } else if (version == plan_->rounds() || version == stop_at_) {
    const double limit =
        version == stop_at_ ? experiment_.checkpoint.grace_s : experiment_.cluster.stall_timeout_s;
    if (checkpoints_.TryAgain(version, Seconds(limit), now)) return;
    Fail(Unavailable("the last checkpoint could not be saved: " + why), actions);
  }
}

// The job cannot go on. What has been learnt since the last checkpoint is saved first, unless a
// part of it is missing.
void Coordinator::EndWith(Status status, TimeUs now, ServerActions* actions) {
  if (ending_) return;
  if (!first_loss_.empty()) {
    status = Status(status.code(), status.message() + "; the first to be lost was " + first_loss_);
  }
  const bool whole = !CarriesState() || experiment_.cluster.recovery == "continue";
  if (!whole || version_ <= std::max<int64_t>(checkpoints_.last(), 0) ||
      checkpoints_.Has(version_)) {
    Fail(std::move(status), actions);
    return;
  }
  LOG(ERROR) << status.message();
  ending_ = std::move(status);
  ending_by_ = now + Seconds(experiment_.checkpoint.grace_s);
  checkpoints_.OrderNow(version_, /*partial=*/true, Progress(now), now);
  SendOrdersToAll(actions);
}

void Coordinator::FinishIfDone(TimeUs now, ServerActions* actions) {
  if (phase_ != Phase::kTraining) return;
  const bool stopped = stop_at_ >= 0 && checkpoints_.last() >= stop_at_;
  const bool done = plan_ && version_ == plan_->rounds() &&
                    checkpoints_.last() == plan_->rounds() && ledger_.complete();
  if (!stopped && !done) return;
  if (done) stop_at_ = -1;
  phase_ = Phase::kFinished;
  over_since_ = now;
  SendOrdersToAll(actions);
}

void Coordinator::Fail(Status status, ServerActions* actions) {
  if (Over()) return;
  LOG(ERROR) << status.message();
  phase_ = Phase::kFailed;
  failure_ = std::move(status);
  SendOrdersToAll(actions);
}

void Coordinator::RequestStop() { stop_requested_ = true; }

void Coordinator::Begin(TimeUs now, ServerActions* actions) {
  phase_ = Phase::kTraining;
  moved_at_ = spread_last_ = now;
  checkpoints_.CountFrom(now);
  std::vector<std::pair<std::string, PeerName>> names;
  for (const LeaseTable::Taker& taker : members_.Takers(leases_)) {
    names.emplace_back(members_.workers[taker.worker].hello.name(), taker.worker);
  }
  std::sort(names.begin(), names.end());
  std::vector<PeerName> workers;
  for (const auto& [name, peer] : names) workers.push_back(peer);
  LOG(INFO) << "training starts at round " << start_version_ << " with " << workers.size()
            << " workers";
  leases_.Begin(workers, start_version_);
  SendOrdersToAll(actions);
}

// What has to be there before training can begin; "" when it is.
std::string Coordinator::WaitsForProcesses(TimeUs now) const {
  if (choosing_) return "the checkpoint to go back to";
  std::string missing = members_.WaitsForServers(now, plan_.has_value());
  const auto& cluster = experiment_.cluster;
  const bool beginning = phase_ == Phase::kWaiting && went_back_why_.empty();
  const int wanted =
      beginning ? std::max(cluster.workers, cluster.min_workers) : cluster.min_workers;
  const int there = static_cast<int>(members_.Takers(leases_).size());
  if (there < wanted) {
    if (!missing.empty()) missing += ", ";
    missing += std::to_string(wanted - there) + " of " + std::to_string(wanted) + " workers";
  }
  return missing;
}

std::string Coordinator::WaitsFor(TimeUs now) const {
  const std::string processes = WaitsForProcesses(now);
  if (phase_ != Phase::kTraining || !processes.empty()) return processes;
  return members_.WaitsForPartitions(now, leases_);
}

void Coordinator::NoticeSilence(TimeUs now, ServerActions* actions) {
  const TimeUs suspect = Seconds(experiment_.cluster.suspect_after_s);
  // Whoever did not tick has not listened either, and when nobody at all is heard it is us who are
  // cut off: the others are not to be blamed for that.
  const bool held_up = now - ticked_at_ > suspect / 2;
  const bool alone = members_.count() > 1 && now - heard_at_ > suspect / 2;
  LOG_IF(WARNING, held_up) << "was held up for " << InSeconds(now - ticked_at_);
  LOG_IF(WARNING, alone && !alone_) << "nobody is heard";
  if (held_up || (alone_ && !alone)) members_.ForgiveSilence(now);
  alone_ = alone;
  if (alone) return;
  for (const PeerName& peer : members_.SilentWorkers(now, suspect)) {
    Lose(peer, "silent for " + InSeconds(suspect), now, actions);
  }
  // A server's weights may still be there: the job waits until it is back or started again.
  members_.MarkSilentServers(now, suspect);
}

void Coordinator::Tick(TimeUs now, ServerActions* actions) {
  if (now < NextDeadline()) return;
  if (!Over()) NoticeSilence(now, actions);
  ticked_at_ = now;
  switch (phase_) {
    case Phase::kWaiting:
      TickWaiting(now, actions);
      break;
    case Phase::kTraining:
      TickTraining(now, actions);
      break;
    default:
      ExitWhenTold(now, actions);
  }
}

void Coordinator::TickTraining(TimeUs now, ServerActions* actions) {
  const TimeUs limit = Seconds(experiment_.cluster.stall_timeout_s);
  if (ending_) {
    if (now > ending_by_) Fail(*ending_, actions);
  } else if (checkpoints_.trying_again()) {
    if (checkpoints_.DueAgain(now) == version_) {
      checkpoints_.OrderNow(version_, /*partial=*/false, Progress(now), now);
      SendOrdersToAll(actions);
    } else if (checkpoints_.IsHopeless(now)) {
      Fail(Unavailable("the last checkpoint could not be saved: not all servers have answered"),
           actions);
    }
  } else if (members_.workers.empty() && stop_requested_ && stop_at_ != version_) {
    EndWith(Unavailable("stopped while no worker was left"), now, actions);
  } else if (now - moved_at_ > limit) {
    EndWith(Unavailable("no round has closed for " + InSeconds(limit) +
                        " (cluster.stall_timeout_s): waited for " + WaitsFor(now)),
            now, actions);
  } else {
    HelpStragglers(now, actions);
  }
}

void Coordinator::TickWaiting(TimeUs now, ServerActions* actions) {
  const auto& cluster = experiment_.cluster;
  const bool beginning = went_back_why_.empty();
  const TimeUs limit = Seconds(beginning ? cluster.join_timeout_s : cluster.stall_timeout_s);
  const std::string missing = WaitsForProcesses(now);
  const bool late = now - waiting_since_ > limit;
  const bool enough = static_cast<int>(members_.Takers(leases_).size()) >= cluster.min_workers;
  if (plan_ && (missing.empty() || (beginning && late && members_.ServersAreReady() && enough))) {
    LOG_IF(WARNING, late) << "begins without " << missing;
    Begin(now, actions);
  } else if (stop_requested_ && beginning) {
    Fail(Unavailable("stopped before the training began"), actions);
  } else if (late) {
    Fail(Unavailable("waited " + InSeconds(limit) + " for " + missing), actions);
  }
}

// Leaves when everybody has asked since the end, or after a while.
void Coordinator::ExitWhenTold(TimeUs now, ServerActions* actions) {
  if (over_since_ == 0) over_since_ = now;
  if (!members_.AllToldEnd() && now - over_since_ < kFarewell) return;
  if (phase_ == Phase::kFailed) {
    actions->push_back(ExitAction{failure_});
  } else if (stop_at_ >= 0) {
    actions->push_back(
        ExitAction{Unavailable("stopped after round " + std::to_string(stop_at_) +
                               ", which is saved: start the job again to go on from there")});
  } else {
    actions->push_back(ExitAction{OkStatus()});
  }
}

double Coordinator::ElapsedSeconds(TimeUs now) const {
  return elapsed_before_ + SecondsSince(started_, now);
}

wire::JobStatus Coordinator::Describe(TimeUs now) const {
  wire::JobStatus status;
  status.set_job_name(identity_.job_name);
  status.set_generation(generation_);
  status.set_round(version_);
  status.set_epochs(experiment_.job.epochs);
  status.set_elapsed_seconds(ElapsedSeconds(now));
  status.set_samples_per_second(members_.SamplesPerSecond());
  if (version_ > 0) {
    status.set_loss(ledger_.progress().last_loss());
    status.set_accuracy(ledger_.progress().last_accuracy());
  }
  status.set_last_checkpoint(checkpoints_.last());
  const wire::Metrics& validation = ledger_.last_validation();
  if (const double n = static_cast<double>(validation.samples()); n > 0) {
    status.set_validation_loss(validation.loss_sum() / n);
    status.set_validation_accuracy(static_cast<double>(validation.correct()) / n);
  }
  if (plan_) {
    status.set_rounds(plan_->rounds());
    const RoundPlan round = plan_->Round(std::clamp<int64_t>(version_, 0, plan_->rounds() - 1));
    status.set_epoch(round.epoch + 1);
    if (schedule_) status.set_learning_rate(schedule_->RateAt(round.first_sample));
    const int64_t left = spec_.train_samples * experiment_.job.epochs - round.first_sample;
    if (status.samples_per_second() > 0) {
      status.set_eta_seconds(static_cast<double>(left) / status.samples_per_second());
    }
  }
  constexpr const char* kPhases[] = {"waiting", "training", "finished", "failed"};
  status.set_phase(kPhases[static_cast<int>(phase_)]);
  if (!Over()) status.set_waits_for(WaitsFor(now));
  members_.Describe(now, leases_, &status);
  return status;
}

}  // namespace kumo
