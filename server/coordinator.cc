#include "server/coordinator.h"

#include <algorithm>
#include <cmath>

#include <glog/logging.h>

namespace kumo {
namespace {

// How long a server keeps telling the others that the job is over before it leaves itself.
constexpr TimeUs kFarewell = 3 * kSecond;
constexpr size_t kMaxWorkers = 4096;

TimeUs Seconds(double seconds) { return static_cast<TimeUs>(seconds * 1e6); }

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
                         const std::string& host, std::optional<checkpoint::Manifest> restored,
                         TimeUs now)
    : identity_(identity),
      experiment_(experiment),
      host_(host),
      restored_(std::move(restored)),
      started_(now),
      next_tick_(now),
      servers_(identity.servers),
      leases_(experiment.sync.partitions),
      last_save_(now) {
  if (!restored_) return;
  generation_ = restored_->generation() + 1;
  start_version_ = restored_->version();
  ledger_ = EpochLedger(restored_->progress());
  last_checkpoint_ = restored_->version();
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

Status Coordinator::OnHello(const PeerName& from, const wire::Hello& hello, TimeUs now,
                            ServerActions* actions) {
  if (hello.role() == wire::Hello::SERVER) {
    Server& server = servers_[hello.server_index()];
    if (!server.peer.empty() && server.hello.incarnation() != hello.incarnation() &&
        phase_ == Phase::kTraining) {
      Fail(Unavailable("server " + std::to_string(hello.server_index()) + " on " + hello.host() +
                       " was started again and has lost its part of the weights: start the job "
                       "again to go on from its last checkpoint"),
           actions);
    }
    server.peer = from;
    server.hello = hello;
    server.seen = now;
    return OkStatus();
  }
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
  alone_since_ = 0;
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
      servers_[i].seen = now;
      servers_[i].report = header.server_report();
      servers_[i].told_end = Over();
      if (!header.server_report().failure().empty()) {
        Fail(ErrorFromPeer(header.server_report().failure_code(),
                           "server " + std::to_string(i) + ": " + header.server_report().failure()),
             actions);
      }
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
  SendOrders(from, actions);
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
  Lose(from, report.failure().empty() ? "it left" : report.failure(), now, actions);
}

void Coordinator::Lose(const PeerName& peer, const std::string& why, TimeUs now,
                       ServerActions* actions) {
  const auto found = workers_.find(peer);
  if (found == workers_.end()) return;
  if (!Over()) {
    LOG(WARNING) << found->second.hello.name() << " on " << found->second.hello.host()
                 << " is lost: " << why;
  }
  workers_.erase(found);
  bool moved = false;
  for (Lease& lease : leases_) {
    // A partition that had just moved away from it may miss its last contribution.
    if (lease.before == peer) {
      lease.before.clear();
      lease.from = std::min(lease.from, OldestOpenRound());
      moved = true;
    }
    if (lease.worker == peer) lease.worker.clear();
  }
  if (workers_.empty()) alone_since_ = now;
  if (phase_ != Phase::kTraining) return;
  const bool orphans =
      std::any_of(leases_.begin(), leases_.end(), [](const Lease& l) { return l.worker.empty(); });
  if (orphans) LeaseOrphans(actions);
  if (moved && !orphans) {
    for (const auto& [other, worker] : workers_) SendOrders(other, actions);
  }
}

// Partitions of nobody go to the workers with the fewest.
void Coordinator::LeaseOrphans(ServerActions* actions) {
  std::map<PeerName, int> load;
  for (const auto& [peer, worker] : workers_) load[peer] = 0;
  if (load.empty()) return;
  for (const Lease& lease : leases_) {
    if (!lease.worker.empty()) ++load[lease.worker];
  }
  for (size_t p = 0; p < leases_.size(); ++p) {
    if (!leases_[p].worker.empty()) continue;
    const auto least = std::min_element(load.begin(), load.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
    leases_[p] = {least->first, OldestOpenRound(), ""};
    ++least->second;
    LOG(INFO) << "partition " << p << " goes to " << workers_[least->first].hello.name()
              << " from round " << leases_[p].from << " on";
  }
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
}

// Blocks arrive whole: the rate is taken from one block's end to a later one's.
void Coordinator::Worker::CountRate() {
  const auto samples = static_cast<double>(report.samples());
  const double passed = report.samples_at_s() - rate_at_s;
  if (rate_at_s > 0) {
    if (!(passed >= 1.0 && samples > rate_samples)) return;
    samples_per_second = (samples - rate_samples) / passed;
  }
  rate_samples = samples;
  rate_at_s = report.samples_at_s();
}

// Evens the leases out, moving as few as possible, each from round `from` on.
void Coordinator::SpreadLeases(int64_t from, ServerActions* actions) {
  std::map<PeerName, int> load;
  for (const auto& [peer, worker] : workers_) load[peer] = 0;
  if (load.empty()) return;
  for (const Lease& lease : leases_) {
    if (!lease.worker.empty()) ++load[lease.worker];
  }
  const auto by_load = [](auto& a, auto& b) { return a.second < b.second; };
  while (true) {
    // Not a structured binding: C++20 lets a lambda capture one, clang before 16 does not.
    const auto extremes = std::minmax_element(load.begin(), load.end(), by_load);
    const auto least = extremes.first, most = extremes.second;
    if (most->second - least->second <= 1) break;
    const auto lease = std::find_if(leases_.begin(), leases_.end(),
                                    [&](const Lease& l) { return l.worker == most->first; });
    *lease = {least->first, from, most->first};
    --most->second;
    ++least->second;
    LOG(INFO) << "partition " << lease - leases_.begin() << " moves to "
              << workers_[least->first].hello.name() << " at round " << from;
  }
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
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
  if (phase_ == Phase::kTraining) {
    for (size_t p = 0; p < leases_.size(); ++p) {
      if (leases_[p].worker != to) continue;
      wire::Orders::Lease* lease = orders->add_leases();
      lease->set_partition(static_cast<int32_t>(p));
      lease->set_from(leases_[p].from);
      lease->set_handed_over(!leases_[p].before.empty());
    }
  }
  actions->push_back(std::move(reply));
}

void Coordinator::OnOwnReport(const wire::ServerReport& report, TimeUs now,
                              ServerActions* actions) {
  servers_[0].seen = now;
  servers_[0].report = report;
  if (!report.failure().empty()) {
    Fail(ErrorFromPeer(report.failure_code(), "server 0: " + report.failure()), actions);
  }
}

Directive Coordinator::OnVersion(int64_t version, const wire::Metrics& metrics, TimeUs now,
                                 ServerActions* actions) {
  version_ = version;
  if (metrics.samples() > 0) {
    actions->push_back(RoundClosedAction{version - 1, metrics});
    ledger_.AddRound(*plan_, version, metrics);
  }
  if (const auto saving = saving_.find(version); saving != saving_.end()) {
    saving->second.progress = ledger_.progress();
    saving->second.progress.set_elapsed_seconds(ElapsedSeconds(now));
  }
  for (Lease& lease : leases_) lease.before.clear();
  if (spread_at_ >= 0 && version >= spread_at_) {
    spread_at_ = -1;
    if (version != stop_at_) SpreadLeases(version, actions);
  }

  Directive directive;
  if (version >= plan_->rounds()) return directive;
  // Of the round that starts now; it ends with version + 1.
  directive.stop = stop_requested_ && stop_at_ < 0 && version + 1 < plan_->rounds();
  if (directive.stop) stop_at_ = version + 1;
  if (spread_wanted_ && spread_at_ < 0) {
    spread_wanted_ = false;
    spread_at_ = version + 1;
  }
  directive.save = SaveIsDue(version, now) || directive.stop || spread_at_ == version + 1;
  if (directive.save) {
    last_save_ = now;
    saving_[version + 1].version = version + 1;
  }
  return directive;
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
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
  for (size_t i = 1; i < servers_.size(); ++i) SendOrders(servers_[i].peer, actions);
}

void Coordinator::Fail(Status status, ServerActions* actions) {
  if (Over()) return;
  LOG(ERROR) << status.message();
  phase_ = Phase::kFailed;
  failure_ = std::move(status);
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (!servers_[i].peer.empty()) SendOrders(servers_[i].peer, actions);
  }
}

void Coordinator::RequestStop() { stop_requested_ = true; }

void Coordinator::Begin(TimeUs now, ServerActions* actions) {
  phase_ = Phase::kTraining;
  last_save_ = now;
  LOG(INFO) << "training starts at round " << start_version_ << " with " << workers_.size()
            << " workers";
  // Contiguous runs of partitions, in the order of the workers' names.
  std::vector<std::pair<std::string, PeerName>> names;
  for (const auto& [peer, worker] : workers_) names.emplace_back(worker.hello.name(), peer);
  std::sort(names.begin(), names.end());
  for (size_t p = 0; p < leases_.size(); ++p) {
    leases_[p] = {names[p * names.size() / leases_.size()].second, start_version_, ""};
  }
  for (const auto& [peer, worker] : workers_) SendOrders(peer, actions);
}

std::string Coordinator::WaitingFor() const {
  std::string missing;
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (i > 0 && servers_[i].peer.empty()) {
      missing += ", server " + std::to_string(i);
    } else if (plan_ && !servers_[i].report.ready()) {
      missing += ", server " + std::to_string(i) + " (loading)";
    }
  }
  if (static_cast<int>(workers_.size()) < experiment_.cluster.workers) {
    missing += ", " + std::to_string(experiment_.cluster.workers - workers_.size()) + " of " +
               std::to_string(experiment_.cluster.workers) + " workers";
  }
  return missing.empty() ? "" : missing.substr(2);
}

void Coordinator::Tick(TimeUs now, ServerActions* actions) {
  if (now < next_tick_) return;
  next_tick_ = now + 100 * kMillisecond;
  if (Over()) {
    ExitWhenTold(now, actions);
    return;
  }
  const TimeUs suspect = Seconds(experiment_.cluster.suspect_after_s);
  std::vector<PeerName> silent;
  for (const auto& [peer, worker] : workers_) {
    if (now - worker.seen > suspect) silent.push_back(peer);
  }
  for (const PeerName& peer : silent) {
    Lose(peer, "silent for " + std::to_string(suspect / kSecond) + " s", now, actions);
  }
  for (size_t i = 1; i < servers_.size(); ++i) {
    if (!servers_[i].peer.empty() && now - servers_[i].seen > suspect) {
      Fail(Unavailable("server " + std::to_string(i) + " on " + servers_[i].hello.host() +
                       " is silent for " + std::to_string(suspect / kSecond) +
                       " s: start the job again to go on from its last checkpoint"),
           actions);
      return;
    }
  }
  const TimeUs limit = Seconds(experiment_.cluster.join_timeout_s);
  if (phase_ == Phase::kTraining) {
    if (workers_.empty() && stop_requested_) {
      Fail(Unavailable("stopped while no worker was left"), actions);
    } else if (workers_.empty() && now - alone_since_ > limit) {
      Fail(Unavailable("no worker is left, and none joined within " +
                       std::to_string(limit / kSecond) + " s"),
           actions);
    }
    return;
  }
  const std::string missing = WaitingFor();
  const bool servers_ready =
      std::all_of(servers_.begin(), servers_.end(), [](auto& s) { return s.report.ready(); });
  const bool late = now - started_ > limit;
  if (plan_ && (missing.empty() || (late && servers_ready && !workers_.empty()))) {
    LOG_IF(WARNING, late) << "begins without " << missing;
    Begin(now, actions);
  } else if (stop_requested_) {
    Fail(Unavailable("stopped before the training began"), actions);
  } else if (late) {
    Fail(Unavailable("waited " + std::to_string(limit / kSecond) + " s for " + missing), actions);
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
  return (restored_ ? restored_->progress().elapsed_seconds() : 0.0) + SecondsSince(started_, now);
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
  status.set_waits_for(phase_ == Phase::kWaiting ? WaitingFor() : servers_[0].report.waits_for());
  for (const auto& [peer, worker] : workers_) {
    wire::JobStatus::Worker* w = status.add_workers();
    w->set_name(worker.hello.name());
    w->set_host(worker.hello.host());
    w->set_seen_seconds_ago(SecondsSince(worker.seen, now));
    *w->mutable_report() = worker.report;
    w->set_samples_per_second(worker.samples_per_second);
    w->mutable_report()->clear_partitions();
    for (size_t p = 0; p < leases_.size(); ++p) {
      if (leases_[p].worker == peer) w->mutable_report()->add_partitions(static_cast<int32_t>(p));
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
