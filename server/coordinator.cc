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
      host_(host),
      generation_(generation),
      restored_(std::move(restored)),
      started_(now),
      waiting_since_(now),
      ticked_at_(now - kTick),
      servers_(identity.servers),
      leases_(experiment.sync.partitions),
      last_save_(now) {
  if (!restored_) return;
  start_version_ = restored_->version();
  elapsed_before_ = restored_->progress().elapsed_seconds();
  ledger_ = EpochLedger(restored_->progress());
  last_checkpoint_ = restored_->version();
}

std::string Coordinator::restore_name() const { return restored_ ? restored_->name() : ""; }

bool Coordinator::Knows(const PeerName& peer) const {
  return workers_.contains(peer) || std::any_of(servers_.begin(), servers_.end(),
                                                [&](const Server& s) { return s.peer == peer; });
}

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
  Server& server = servers_[hello.server_index()];
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
  if (hello.role() == wire::Hello::SERVER) return OnServerHello(from, hello, now, actions);
  if (workers_.size() >= kMaxWorkers && !workers_.contains(from)) {
    return ResourceExhausted("the job has " + std::to_string(kMaxWorkers) + " workers already");
  }
  // The same worker started again: what its former process held is free at once.
  const std::string taken = "another process has joined under the name " + hello.name();
  if (replaced_.contains(from)) return FailedPrecondition(taken);
  const auto former = std::find_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.first != from && entry.second.hello.name() == hello.name();
  });
  if (former != workers_.end()) {
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
  const bool known = workers_.contains(from);
  Worker& worker = workers_[from];
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
  if (header.has_server_report()) {
    for (size_t i = 1; i < servers_.size(); ++i) {
      if (servers_[i].peer != from) continue;
      servers_[i].told_end = Over();
      OnServerReport(static_cast<int>(i), header.server_report(), now, actions);
      SendOrders(from, actions);
    }
    return;
  }
  const auto found = workers_.find(from);
  if (found == workers_.end()) {
    // Given up while it was silent: it has to join again.
    SendAction reply{from, {}};
    reply.message.header.set_type(wire::GONE);
    actions->push_back(std::move(reply));
    return;
  }
  Worker& worker = found->second;
  worker.seen = now;
  worker.report = header.worker_report();
  worker.told_end = Over();
  worker.CountRate();
  if (worker.report.leaving() && !worker.leaving) {
    worker.leaving = true;
    LOG(INFO) << worker.hello.name() << " on " << worker.hello.host() << " was told to leave";
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
  Server& server = servers_[index];
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
  const auto found = workers_.find(from);
  if (found == workers_.end()) return;
  const wire::WorkerReport& report = header.worker_report();
  const std::string who = found->second.hello.name() + " on " + found->second.hello.host();
  if (static_cast<StatusCode>(report.failure_code()) == StatusCode::kFailedPrecondition) {
    // A retry cannot help, on another worker neither.
    Fail(FailedPrecondition(who + ": " + report.failure()), actions);
  }
  if (report.handed_over()) leases_.HandedOver(from);
  Lose(from, report.failure().empty() ? "it left" : report.failure(), now, actions);
}

void Coordinator::Lose(const PeerName& peer, const std::string& why, TimeUs now,
                       ServerActions* actions) {
  const auto found = workers_.find(peer);
  if (found == workers_.end()) return;
  const std::string who = found->second.hello.name() + " on " + found->second.hello.host();
  workers_.erase(found);
  const bool lost = leases_.Lose(peer, OldestOpenRound());
  if (!Over()) {
    LOG(WARNING) << who << (lost ? " is lost: " : " has left: ") << why;
  }
  if (phase_ != Phase::kTraining || !lost) return;
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

std::vector<LeaseTable::Taker> Coordinator::Takers() const {
  std::vector<LeaseTable::Taker> takers;
  for (const auto& [peer, worker] : workers_) {
    if (!worker.leaving) takers.push_back({peer, worker.block_ms});
  }
  return takers;
}

void Coordinator::LeaseOrphans(ServerActions* actions) {
  if (static_cast<int>(workers_.size()) >= experiment_.cluster.min_workers) {
    leases_.LeaseOrphans(Takers(), OldestOpenRound());
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
  saving_.clear();
  spread_wanted_ = false;
  spread_at_ = stop_at_ = -1;
  for (Server& server : servers_) server.report.Clear();
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
  last_checkpoint_ = restored_ ? start_version_ : -1;
  ledger_ = restored_ ? EpochLedger(restored_->progress()) : EpochLedger();
  ledger_.Start(*plan_, start_version_);
  waiting_since_ = now;
  LOG(WARNING) << "generation " << generation_ << " goes back to round " << start_version_ << ": "
               << went_back_why_;
  actions->push_back(WentBackAction{start_version_, went_back_why_});
}

// Blocks arrive whole: the rate is taken from one block's end to a later one's.
void Coordinator::Worker::CountRate() {
  const auto samples = static_cast<double>(report.samples());
  const double passed = report.samples_at_s() - rate_at_s;
  if (report.compute_ms() > 0) {
    constexpr double kNew = 0.3;
    block_ms =
        block_ms > 0 ? (1 - kNew) * block_ms + kNew * report.compute_ms() : report.compute_ms();
  }
  if (rate_at_s > 0) {
    if (!(passed >= 1.0 && samples > rate_samples)) return;
    samples_per_second = (samples - rate_samples) / passed;
  }
  rate_samples = samples;
  rate_at_s = report.samples_at_s();
}

// No shard has closed this round in all its chunks before: a lower bound, since reports are late.
int64_t Coordinator::OldestOpenRound() const {
  int64_t oldest = std::max(version_, start_version_);
  for (const Server& server : servers_) {
    if (server.report.ready()) oldest = std::min(oldest, server.report.version());
  }
  return std::max(oldest, start_version_);
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
  const auto worker = workers_.find(to);
  orders->set_released(worker != workers_.end() && worker->second.leaving &&
                       leases_.Count(to) == 0);
  if (phase_ == Phase::kTraining) {
    for (size_t p = 0; p < leases_.leases().size(); ++p) {
      const LeaseTable::Lease& lease = leases_.leases()[p];
      if (lease.worker != to) continue;
      wire::Orders::Lease* order = orders->add_leases();
      order->set_partition(static_cast<int32_t>(p));
      order->set_from(lease.from);
      order->set_handed_over(!lease.before.empty());
    }
  }
  actions->push_back(std::move(reply));
}

void Coordinator::SendOrdersToAll(ServerActions* actions) {
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (!servers_[i].peer.empty()) SendOrders(servers_[i].peer, actions);
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
  if (const auto saving = saving_.find(version); saving != saving_.end()) {
    saving->second.progress = ledger_.progress();
    saving->second.progress.set_elapsed_seconds(ElapsedSeconds(now));
  }
  leases_.Settle(version);
  if (spread_at_ >= 0 && version >= spread_at_) {
    spread_at_ = -1;
    if (version != stop_at_) {
      leases_.Spread(Takers(), version);
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
  if (directive.save) {
    last_save_ = now;
    saving_[version + 1].version = version + 1;
  }
  return directive;
}

bool Coordinator::SpreadIsDue(TimeUs now) {
  if (phase_ != Phase::kTraining || spread_at_ >= 0) return false;
  const bool uneven =
      now - spread_last_ > kSpreadPause && leases_.Imbalance(Takers()) > kWorthSpreading;
  if (!spread_wanted_ && !uneven) return false;
  spread_wanted_ = false;
  spread_last_ = now;
  return true;
}

bool Coordinator::SaveIsDue(int64_t version, TimeUs now) const {
  const int64_t next = version + 1;
  const auto& options = experiment_.checkpoint;
  if (next == plan_->rounds()) return true;
  if (options.every_rounds > 0 && next % options.every_rounds == 0) return true;
  return options.every_minutes > 0 && now - last_save_ >= Seconds(options.every_minutes * 60);
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

Status Coordinator::OnSaved(int server, const wire::Header& header, ServerActions* actions) {
  if (server > 0) AcknowledgeTo(servers_[server].peer, header, actions);
  const auto found = saving_.find(header.round());
  if (found == saving_.end()) return OkStatus();
  Saving& saving = found->second;
  const wire::SavedFile& file = header.saved_file();
  if (!file.failure().empty()) {
    saving.failed = true;
    LOG(ERROR) << "checkpoint of round " << saving.version << " failed on server " << server << ": "
               << file.failure() << "; training goes on, the last good one is of round "
               << last_checkpoint_;
    if (saving.version == plan_->rounds() || saving.version == stop_at_) {
      Fail(Unavailable("the last checkpoint could not be saved on server " +
                       std::to_string(server) + ": " + file.failure()),
           actions);
    }
    saving_.erase(found);
    return OkStatus();
  }
  checkpoint::File entry;
  entry.set_name(file.name());
  entry.set_bytes(file.bytes());
  entry.set_crc32c(file.crc32c());
  saving.files[server] = entry;
  if (static_cast<int>(saving.files.size()) < ServersWithChunks() || saving.committing) {
    return OkStatus();
  }
  saving.committing = true;
  CommitAction commit;
  commit.manifest.set_job_name(identity_.job_name);
  commit.manifest.set_experiment_hash(identity_.experiment_hash);
  commit.manifest.set_experiment_text(identity_.experiment_text);
  commit.manifest.set_fingerprint(spec_.layout.fingerprint());
  commit.manifest.set_generation(generation_);
  commit.manifest.set_version(saving.version);
  for (const auto& [index, f] : saving.files) *commit.manifest.add_files() = f;
  *commit.manifest.mutable_progress() = saving.progress;
  actions->push_back(std::move(commit));
  // What has been overtaken is not needed any more; and were it committed late, this checkpoint
  // would pass for one of a past that the job went back from.
  saving_.erase(saving_.begin(), found);
  return OkStatus();
}

void Coordinator::OnCommitted(int64_t version, const Status& status, TimeUs now,
                              ServerActions* actions) {
  saving_.erase(version);
  if (status.ok()) {
    last_checkpoint_ = std::max(last_checkpoint_, version);
    LOG(INFO) << "checkpoint of round " << version << " is complete";
  } else {
    LOG(ERROR) << "checkpoint of round " << version << " failed: " << status.message();
    if (version == plan_->rounds() || version == stop_at_) {
      Fail(status.WithContext("the last checkpoint could not be saved"), actions);
    }
  }
  FinishIfDone(now, actions);
}

void Coordinator::FinishIfDone(TimeUs now, ServerActions* actions) {
  if (phase_ != Phase::kTraining) return;
  const bool stopped = stop_at_ >= 0 && last_checkpoint_ >= stop_at_;
  const bool done = plan_ && version_ == plan_->rounds() && last_checkpoint_ == plan_->rounds() &&
                    ledger_.complete();
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
  last_save_ = moved_at_ = spread_last_ = now;
  std::vector<std::pair<std::string, PeerName>> names;
  for (const LeaseTable::Taker& taker : Takers()) {
    names.emplace_back(workers_[taker.worker].hello.name(), taker.worker);
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
  std::string missing;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const Server& server = servers_[i];
    const std::string name = ", server " + std::to_string(i);
    if (i > 0 && server.peer.empty()) {
      missing += name;
    } else if (server.silent) {
      missing += name + " on " + server.hello.host() + " (silent for " +
                 InSeconds(now - server.seen) + ")";
    } else if (plan_ && !server.report.ready()) {
      missing += name + " (loading)";
    }
  }
  const auto& cluster = experiment_.cluster;
  const bool beginning = phase_ == Phase::kWaiting && went_back_why_.empty();
  const int wanted =
      beginning ? std::max(cluster.workers, cluster.min_workers) : cluster.min_workers;
  const int there = static_cast<int>(Takers().size());
  if (there < wanted) {
    missing += ", " + std::to_string(wanted - there) + " of " + std::to_string(wanted) + " workers";
  }
  return missing.empty() ? "" : missing.substr(2);
}

// "partition 3 of round 812 (worker-5 on b, seen 2 s ago: round 812: trains partition 3)"
std::string Coordinator::WaitsForPartitions(TimeUs now) const {
  for (const Server& server : servers_) {
    if (server.report.missing_size() == 0) continue;
    const int partition = server.report.missing(0);
    if (partition < 0 || partition >= static_cast<int>(leases_.leases().size())) continue;
    const std::string text = server.report.waits_for();
    const auto worker = workers_.find(leases_.leases()[partition].worker);
    if (worker == workers_.end()) return text + " (nobody's)";
    return text + " (" + worker->second.hello.name() + " on " + worker->second.hello.host() +
           ", seen " + InSeconds(now - worker->second.seen) +
           " ago: " + worker->second.report.state() + ")";
  }
  return servers_[0].report.waits_for();
}

void Coordinator::NoticeSilence(TimeUs now, ServerActions* actions) {
  const TimeUs suspect = Seconds(experiment_.cluster.suspect_after_s);
  // Whoever did not tick has not listened either: nobody is to be blamed for that.
  if (now - ticked_at_ > suspect / 2) {
    LOG(WARNING) << "was held up for " << InSeconds(now - ticked_at_);
    for (auto& [peer, worker] : workers_) worker.seen = now;
    for (Server& server : servers_) server.seen = now;
  }
  std::vector<PeerName> silent;
  for (const auto& [peer, worker] : workers_) {
    if (now - worker.seen > suspect) silent.push_back(peer);
  }
  for (const PeerName& peer : silent) Lose(peer, "silent for " + InSeconds(suspect), now, actions);
  for (size_t i = 1; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    if (server.peer.empty() || server.silent || now - server.seen <= suspect) continue;
    // Its weights may still be there: the job waits until it is back or started again.
    server.silent = true;
    LOG(WARNING) << "server " << i << " on " << server.hello.host() << " is silent for "
                 << InSeconds(suspect) << "; the job waits for it";
  }
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
  if (workers_.empty() && stop_requested_) {
    Fail(Unavailable("stopped while no worker was left"), actions);
  } else if (now - moved_at_ > limit) {
    std::string waits_for = WaitsForProcesses(now);
    if (waits_for.empty()) waits_for = WaitsForPartitions(now);
    Fail(Unavailable("no round has closed for " + InSeconds(limit) +
                     " (cluster.stall_timeout_s): waited for " + waits_for),
         actions);
  }
}

void Coordinator::TickWaiting(TimeUs now, ServerActions* actions) {
  const auto& cluster = experiment_.cluster;
  const bool beginning = went_back_why_.empty();
  const TimeUs limit = Seconds(beginning ? cluster.join_timeout_s : cluster.stall_timeout_s);
  const std::string missing = WaitsForProcesses(now);
  const bool servers_ready =
      std::all_of(servers_.begin(), servers_.end(), [](auto& s) { return s.report.ready(); });
  const bool late = now - waiting_since_ > limit;
  const bool enough = static_cast<int>(Takers().size()) >= cluster.min_workers;
  if (plan_ && (missing.empty() || (beginning && late && servers_ready && enough))) {
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
  bool all_told = true;
  for (const auto& [peer, worker] : workers_) all_told &= worker.told_end;
  for (size_t i = 1; i < servers_.size(); ++i) {
    all_told &= servers_[i].peer.empty() || servers_[i].told_end;
  }
  if (!all_told && now - over_since_ < kFarewell) return;
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

double Coordinator::WorkerRates() const {
  double rate = 0;
  for (const auto& [peer, worker] : workers_) rate += worker.samples_per_second;
  return rate;
}

wire::JobStatus Coordinator::Describe(TimeUs now) const {
  wire::JobStatus status;
  status.set_job_name(identity_.job_name);
  status.set_generation(generation_);
  status.set_round(version_);
  status.set_epochs(experiment_.job.epochs);
  status.set_elapsed_seconds(ElapsedSeconds(now));
  status.set_samples_per_second(WorkerRates());
  if (version_ > 0) {
    status.set_loss(ledger_.progress().last_loss());
    status.set_accuracy(ledger_.progress().last_accuracy());
  }
  status.set_last_checkpoint(last_checkpoint_);
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
  std::string waits_for = Over() ? "" : WaitsForProcesses(now);
  if (phase_ == Phase::kTraining && waits_for.empty()) waits_for = WaitsForPartitions(now);
  status.set_waits_for(waits_for);
  for (const auto& [peer, worker] : workers_) {
    wire::JobStatus::Worker* w = status.add_workers();
    w->set_name(worker.hello.name());
    w->set_host(worker.hello.host());
    w->set_seen_seconds_ago(SecondsSince(worker.seen, now));
    *w->mutable_report() = worker.report;
    w->set_samples_per_second(worker.samples_per_second);
    w->mutable_report()->clear_partitions();
    for (size_t p = 0; p < leases_.leases().size(); ++p) {
      if (leases_.leases()[p].worker == peer)
        w->mutable_report()->add_partitions(static_cast<int32_t>(p));
    }
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    wire::JobStatus::Server* s = status.add_servers();
    s->set_index(static_cast<int32_t>(i));
    s->set_host(i == 0 ? host_ : servers_[i].hello.host());
    s->set_seen_seconds_ago(SecondsSince(servers_[i].seen, now));
    *s->mutable_report() = servers_[i].report;
  }
  return status;
}

}  // namespace kumo
