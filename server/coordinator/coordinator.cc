#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <glog/logging.h>

#include "common/job/options/option_value.h"

namespace kumo {
namespace {

// Moving leases costs a checkpoint: only where rounds become so much shorter, and not often.
constexpr double kWorthSpreading = 1.25;
constexpr TimeUs kSpreadPause = 60 * kSecond;

}  // namespace

Coordinator::Coordinator(const JobIdentity& identity, const Experiment& experiment,
                         const std::string& host, uint32_t generation,
                         std::optional<checkpoint::Manifest> restored, TimeUs now)
    : identity_(identity),
      experiment_(experiment),
      generation_(generation),
      since_(generation),
      restored_(std::move(restored)),
      started_(now),
      waiting_since_(now),
      ticked_at_(now - kTick),
      heard_at_(now),
      members_(identity.servers, host, experiment.cluster),
      leases_(experiment.sync.partitions),
      checkpoints_(experiment.checkpoint, restored_ ? restored_->version() : -1, now) {
  undecided_ = choosing_ = experiment.cluster.KeepsVersionsTwice();
  if (!restored_) return;
  if (restored_->has_origin()) origin_ = restored_->origin();
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
    if (IsLate(hello, former->second.hello)) return FailedPrecondition(taken);
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
    spread_wanted_ |= !CollectsClaims() || hello.claims_size() == 0;
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
      OnServerReport(static_cast<int>(i), header.server_report(), now, actions);
      SendOrders(from, actions);
    }
    return;
  }
  WorkerMember* const found = members_.Find(from);
  if (!found) {
    // The worker was given up while it was silent: it has to join again.
    SendAction reply{from, {}};
    reply.message.header.set_type(wire::GONE);
    actions->push_back(std::move(reply));
    return;
  }
  WorkerMember& worker = *found;
  worker.seen = now;
  worker.OnReport(header.worker_report());
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
  if (server.silent || !report.ready()) server.back_at = now;
  server.seen = now;
  server.report = report;
  const std::string name = "server " + std::to_string(index);
  if (server.silent) LOG(WARNING) << name << " is back";
  server.silent = false;
  if (!report.failure().empty()) {
    Fail(ErrorFromPeer(report.failure_code(), name + ": " + report.failure()), actions);
  } else if (report.ready()) {
    LOG_IF(INFO, server.recovering) << name << " has its part of the weights again";
    server.recovering = false;
  } else if (phase_ == Phase::kTraining && (report.lost() || !server.recovering)) {
    GoBack(name + " has lost its part of the weights", now, actions);
  }
}

bool Coordinator::CarriesState() const { return CarriedArrays(experiment_, spec_) > 0; }

bool Coordinator::LossTakesBack() const {
  return CarriesState() && experiment_.cluster.recovery == "exact";
}

void Coordinator::SendOrders(const PeerName& to, ServerActions* actions) {
  SendAction reply{to, {}};
  wire::Header& header = reply.message.header;
  header.set_type(wire::HEARTBEAT_REPLY);
  if (CollectsClaims()) {  // no orders yet: who has leases goes on with them
    actions->push_back(std::move(reply));
    return;
  }
  header.set_round(version_);
  if (phase_ == Phase::kFailed) {
    header.mutable_refusal()->set_code(static_cast<uint32_t>(failure_.code()));
    header.mutable_refusal()->set_reason(failure_.message());
  }
  wire::Orders* orders = header.mutable_orders();
  orders->set_waits_for(WaitsForProcesses(ticked_at_));
  orders->set_finished(phase_ == Phase::kFinished);
  orders->set_stopped(phase_ == Phase::kFinished && stop_at_ >= 0);
  // Who joins now would go on beyond it: chunk 0 has said so with the version before. Orders do
  // not say it earlier: should server 0 die before that version is kept twice, nobody knows of the
  // stop any more.
  if (stop_at_ >= 0 && version_ >= stop_at_) orders->set_stop_at(stop_at_);
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
  for (const ServerMember& server : members_.servers) {
    if (!server.peer.empty() && !server.said_bye) SendOrders(server.peer, actions);
  }
}

Directive Coordinator::OnVersion(int64_t version, const wire::Metrics& metrics, TimeUs now,
                                 ServerActions* actions) {
  version_ = version;
  round_times_.push_back(now - moved_at_);
  if (round_times_.size() > kRoundTimes) round_times_.pop_front();
  moved_at_ = now;
  first_loss_.clear();  // it was made good
  if (metrics.samples() > 0) RecordRound(version, metrics, now, actions);
  checkpoints_.SetProgress(version, Progress(now));
  leases_.Settle(version);
  if (spread_at_ >= 0 && version >= spread_at_) {
    spread_at_ = -1;
    if (CollectsClaims()) {
      spread_wanted_ = true;
    } else if (version != stop_at_) {
      leases_.Spread(members_.Takers(leases_), version);
      SendOrdersToAll(actions);
    }
  }

  ReleaseEvaluations(version, actions);
  Directive directive = Direct(version, now);
  if (experiment_.cluster.KeepsVersionsTwice()) {
    const auto state = std::make_shared<wire::CoordinatorState>();
    ledger_.Describe(state.get());
    state->mutable_progress()->set_elapsed_seconds(ElapsedSeconds(now));
    if (origin_) *state->mutable_origin() = *origin_;
    state->set_save(directive.save);
    state->set_stop_at(stop_at_);
    state->set_move_at(spread_at_);
    directive.state = state;
  }
  return directive;
}

// What the round that made a version adds to the curves.
void Coordinator::RecordRound(int64_t version, const wire::Metrics& metrics, TimeUs now,
                              ServerActions* actions) {
  const RoundPlan round = plan_->Round(version - 1);
  rate_.OnClosed(round, now);
  actions->push_back(RoundClosedAction{round.round, metrics});
  const auto sums = ledger_.AddRound(*plan_, version, metrics, experiment_.output.points_per_epoch);
  if (!sums) return;
  actions->push_back(CurvePointAction{version, plan_->SamplesAt(version), round.epoch, *sums,
                                      LearningRateAt(round)});
}

bool Coordinator::SpreadIsDue(TimeUs now) {
  if (phase_ != Phase::kTraining || spread_at_ >= 0 || CollectsClaims()) return false;
  const bool uneven = now - spread_last_ > kSpreadPause &&
                      leases_.Imbalance(members_.Takers(leases_)) > kWorthSpreading;
  if (!spread_wanted_ && !uneven) return false;
  spread_wanted_ = false;
  spread_last_ = now;
  return true;
}

// What came during one version is in the coordinator's state of the next one; that is kept twice
// when the one after it is made. It need not have come during the version that was evaluated: what
// is sent again to a new server 0 may be overtaken by the contributions.
void Coordinator::ReleaseEvaluations(int64_t version, ServerActions* actions) {
  std::erase_if(held_evaluations_, [&](const auto& entry) {
    const HeldEvaluation& evaluation = entry.second;
    if (evaluation.came_at >= version - 1) return false;
    for (const auto& [peer, release] : evaluation.released) actions->push_back(release);
    return true;
  });
}

Status Coordinator::OnEvaluated(const PeerName& from, const wire::Header& header, TimeUs now,
                                ServerActions* actions) {
  const int64_t version = header.round();
  if (!plan_ || version > version_ || plan_->EvaluatedEpoch(version) < 0 ||
      header.partition() < 0 || header.partition() >= plan_->settings().partitions) {
    return InvalidArgument("an evaluation of version " + std::to_string(version) + ", partition " +
                           std::to_string(header.partition()));
  }
  const std::pair<int64_t, int> evaluation{version, header.partition()};
  if (ledger_.Waits(*plan_, version, header.partition())) {
    moved_at_ = now;  // one that is sent again, since it is held, moves nothing
    if (experiment_.cluster.KeepsVersionsTwice()) held_evaluations_[evaluation].came_at = version_;
  }
  const auto held = held_evaluations_.find(evaluation);
  if (held != held_evaluations_.end()) held->second.released[from] = Acknowledgement(from, header);
  actions->push_back(Acknowledgement(from, header, held != held_evaluations_.end()));
  if (const auto epoch =
          ledger_.AddEvaluation(*plan_, version, header.partition(), header.metrics())) {
    actions->push_back(EpochEvaluatedAction{epoch->epoch, epoch->train, epoch->validation, version,
                                            plan_->SamplesAt(version)});
    KeepEvaluation(*epoch, version, actions);
    FinishIfDone(now, actions);
  }
  return OkStatus();
}

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

std::string Coordinator::WaitsForProcesses(TimeUs now) const {
  if (Over()) return "";
  if (undecided_) return members_.WaitsForServers(now, false);
  if (choosing_) return since_ == generation_ ? "the checkpoint to go back to" : "the disk";
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
      TickOver(now, actions);
  }
}

void Coordinator::TickTraining(TimeUs now, ServerActions* actions) {
  TickClaims(now, actions);
  if (phase_ != Phase::kTraining) return;
  const TimeUs limit = FromSeconds(experiment_.cluster.stall_timeout_s);
  if (ending_) {
    if (now > ending_by_) {
      Fail(*ending_, actions);
    } else if (!checkpoints_.Has(version_) && now >= save_again_at_) {
      // A last block's contributions were still on their way, or the disk did not take it.
      checkpoints_.OrderNow(version_, /*partial=*/true, Progress(now), now);
      SendOrdersToAll(actions);
    }
  } else if (checkpoints_.Insists(version_)) {
    if (checkpoints_.IsDueAgain(version_, now)) {
      checkpoints_.OrderNow(version_, /*partial=*/false, Progress(now), now);
      SendOrdersToAll(actions);
    } else if (checkpoints_.IsHopeless(now)) {
      Fail(Unavailable("the last checkpoint could not be saved: not all servers have answered"),
           actions);
    }
  } else if (stop_requested_ && (stop_at_ < 0 || stop_at_ != version_) &&
             (members_.workers.empty() || alone_ || (leases_.HasOrphans() && !CollectsClaims()))) {
    // Nobody brings the round to its end.
    EndWith(Unavailable("stopped while there were too few workers"), now, actions);
  } else if (now - moved_at_ > limit) {
    EndWith(Unavailable("no round has closed for " + InWholeSeconds(limit) +
                        " (cluster.stall_timeout_s): waited for " + WaitsFor(now)),
            now, actions);
  } else {
    HelpStragglers(now, actions);
  }
}

void Coordinator::TickWaiting(TimeUs now, ServerActions* actions) {
  const auto& cluster = experiment_.cluster;
  const bool beginning = went_back_why_.empty();
  const TimeUs limit = FromSeconds(beginning ? cluster.join_timeout_s : cluster.stall_timeout_s);
  const std::string missing = WaitsForProcesses(now);
  const bool late = now - waiting_since_ > limit;
  const bool enough = static_cast<int>(members_.Takers(leases_).size()) >= cluster.min_workers;
  if (plan_ && (missing.empty() || (beginning && late && members_.ServersAreReady() && enough))) {
    LOG_IF(WARNING, late) << "begins without " << missing;
    Begin(now, actions);
  } else if (stop_requested_ && beginning) {
    Fail(Unavailable("stopped before the training began"), actions);
  } else if (late) {
    Fail(Unavailable("waited " + InWholeSeconds(limit) + " for " + missing), actions);
  }
}

double Coordinator::ElapsedSeconds(TimeUs now) const {
  return elapsed_before_ + ToSeconds(now - started_);
}

wire::JobStatus Coordinator::Describe(TimeUs now) const {
  wire::JobStatus status;
  status.set_job_name(identity_.job_name);
  status.set_generation(generation_);
  status.set_elapsed_seconds(ElapsedSeconds(now));
  DescribeProgress(now, &status);
  status.set_last_checkpoint(checkpoints_.last());
  const wire::Metrics& validation = ledger_.last_validation();
  if (const double n = static_cast<double>(validation.samples()); n > 0) {
    status.set_validation_loss(validation.loss_sum() / n);
    status.set_validation_accuracy(static_cast<double>(validation.correct()) / n);
  }
  constexpr const char* kPhases[] = {"waiting", "training", "finished", "failed"};
  status.set_phase(kPhases[static_cast<int>(phase_)]);
  if (!Over()) status.set_waits_for(WaitsFor(now));
  members_.Describe(now, leases_, &status);
  return status;
}

void Coordinator::DescribeProgress(TimeUs now, wire::JobStatus* status) const {
  const int64_t version = std::max(version_, start_version_);
  status->set_round(version);
  status->set_epochs(experiment_.job.epochs);
  const checkpoint::Progress& progress = ledger_.progress();
  if (progress.has_last_loss()) status->set_loss(progress.last_loss());
  if (progress.has_last_accuracy()) status->set_accuracy(progress.last_accuracy());
  const auto rate = rate_.SamplesPerSecond(now);
  if (rate) status->set_samples_per_second(*rate);
  if (!plan_) return;
  status->set_rounds(plan_->rounds());
  status->set_samples(plan_->SamplesAt(version));
  status->set_total_samples(plan_->samples());
  const RoundPlan round = plan_->Round(std::min(version, plan_->rounds() - 1));
  status->set_epoch(round.epoch + 1);
  if (const auto lr = LearningRateAt(round)) status->set_learning_rate(*lr);
  if (const auto left = SecondsLeft(version, now)) status->set_eta_seconds(*left);
}

// Of a round, as people write it: 0.05 instead of 0.0500000007.
std::optional<double> Coordinator::LearningRateAt(const RoundPlan& round) const {
  if (!schedule_) return std::nullopt;
  return std::strtod(WriteValue(schedule_->RateAt(round.first_sample)).c_str(), nullptr);
}

// By the rate of rounds like those that are left. While there is a warm-up, blocks are taken to be
// computed as fast as its minibatches are, and to wait for nobody.
std::optional<double> Coordinator::SecondsLeft(int64_t version, TimeUs now) const {
  const RoundPlan last = plan_->Round(plan_->rounds() - 1);
  const RoundPlan round = plan_->Round(std::min(version, plan_->rounds() - 1));
  const auto rate = rate_.SamplesPerSecondOf(round, now);
  if (!rate) return std::nullopt;
  const int64_t samples = plan_->SamplesAt(version);
  if (TrainingRate::AreAlike(round, last)) {
    return static_cast<double>(plan_->samples() - samples) / *rate;
  }
  const double round_ms = leases_.TypicalRound(members_.Takers(leases_));
  if (round_ms <= 0) return std::nullopt;
  const PlanSettings& plan = plan_->settings();
  const int64_t minibatches = int64_t{plan.partitions} * plan.minibatch;
  return static_cast<double>(plan.warmup_samples - samples) / *rate +
         static_cast<double>(plan_->samples() - plan.warmup_samples) * round_ms * 1e-3 /
             static_cast<double>(minibatches);
}

}  // namespace kumo
