#include "tests/sim/cluster.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/job/checkpoint/checkpoint.h"
#include "common/job/checkpoint/continuation.h"
#include "common/job/checkpoint/resume_point.h"
#include "common/job/options/experiment_text.h"

namespace kumo::sim {
namespace {

constexpr TimeUs kComputeChunk = 50;
constexpr TimeUs kSaveFile = 20 * kMillisecond;
constexpr TimeUs kWriteManifest = kMillisecond;
constexpr TimeUs kTrainBlock = 30 * kMillisecond;
constexpr TimeUs kEvaluateSlice = 5 * kMillisecond;
constexpr TimeUs kRestartWithin = 3 * kSecond;

// A snapshot that shares nothing with the shard, as a file would not.
ShardSnapshot DeepCopy(const ShardSnapshot& snapshot) {
  ShardSnapshot copy{snapshot.version, {}};
  for (const StateArray& array : snapshot.arrays) {
    auto numbers = std::make_shared<std::vector<float>>(array.numbers.begin(), array.numbers.end());
    StateArray own = array;
    own.numbers = *numbers;
    own.owner = numbers;
    copy.arrays.push_back(std::move(own));
  }
  return copy;
}

}  // namespace

struct Cluster::Process {
  int index = 0;
  bool alive = true;
  bool frozen = false;
  bool deaf = false, mute = false;  // cut off: nothing comes in, nothing goes out
};

struct Cluster::ServerProcess : Process {
  std::unique_ptr<ServerNode> node;
  uint64_t incarnation = 1;
  Status status;
};

struct Cluster::WorkerProcess : Process {
  uint64_t incarnation = 0;
  bool leaves = false;
  std::optional<Session> session;
  std::unique_ptr<FakeTrainer> trainer;
};

Cluster::Cluster(SimSettings settings, Disk* disk)
    : settings_(std::move(settings)),
      disk_(disk ? disk : &own_disk_),
      rng_(settings_.seed, RngPurpose::kSimulation) {
  settings_.experiment.cluster.servers.assign(settings_.servers, "ipc://sim");
  invariants_.emplace(PlanFor(settings_.experiment, Spec()).value(), settings_.validation_samples);
}

Cluster::~Cluster() = default;

JobSpec Cluster::Spec() const {
  JobSpec spec;
  spec.layout = ParameterLayout::Make(settings_.tensors).value();
  spec.train_samples = settings_.train_samples;
  spec.validation_samples = settings_.validation_samples;
  spec.optimiser_slots = settings_.experiment.block.reset_local_state ||
                                 settings_.experiment.sync.mode == SyncMode::kGradient
                             ? 0
                             : 1;
  return spec;
}

void Cluster::At(TimeUs when, std::function<void()> run) {
  events_.push({when, sequence_++, std::move(run)});
}

void Cluster::In(const std::shared_ptr<Process>& process, std::function<void()> run) {
  if (!process->alive) return;
  if (process->frozen) {
    held_[process].push_back(std::move(run));
  } else {
    run();
  }
}

void Cluster::Deliver(const std::shared_ptr<Process>& from, const std::shared_ptr<Process>& to,
                      std::function<void()> arrival) {
  ++result_.messages;
  const Faults& faults = settings_.faults;
  const bool dropped = rng_.NextUniform() < faults.drop;
  const int copies = rng_.NextUniform() < faults.duplicate ? 2 : 1;
  if (dropped || from->mute) return;
  for (int i = 0; i < copies; ++i) {
    const TimeUs extra = faults.jitter > 0 ? RandomTime(faults.jitter) : 0;
    At(now_ + faults.latency + extra, [this, to, arrival] {
      if (!to->deaf) In(to, arrival);
    });
  }
}

// --- Processes come and go.

void Cluster::StartServer(int index) {
  const auto former = servers_[index];
  auto server = std::make_shared<ServerProcess>();
  server->index = index;
  server->incarnation = former ? former->incarnation + 1 : 1;
  ServerNodeSettings settings;
  settings.index = index;
  settings.identity = IdentityOf(settings_.experiment);
  settings.experiment = settings_.experiment;
  settings.process = {"sim", 0, server->incarnation, "sim", now_ / kMillisecond};
  if (index == 0) {
    if (!disk_->manifests.empty()) {
      const checkpoint::Manifest& newest = disk_->manifests.rbegin()->second;
      settings.restored = Continued(newest);
      settings.finished = settings.restored->continuations_size() == newest.continuations_size() &&
                          IsFinished(newest, settings_.experiment);
    }
    settings.generation = ++disk_->generation;
    settings.folder = disk_->token = settings.generation;
    // Where versions are kept twice, it is known later which of them count.
    if (former && !settings_.experiment.cluster.KeepsVersionsTwice()) {
      ForgetPoints(settings.restored ? settings.restored->version() : -1);
    }
    if (former) {
      invariants_->OnWentBack(settings.generation,
                              settings.restored ? settings.restored->version() : 0, true);
    }
  }
  server->node = std::make_unique<ServerNode>(settings, now_);
  servers_[index] = server;
  Tick(server);
}

// As the recorder does.
void Cluster::ForgetPoints(int64_t version) {
  std::erase_if(result_.points, [&](const auto& point) { return point.version > version; });
}

void Cluster::StartWorker(int index, uint64_t incarnation) {
  auto worker = std::make_shared<WorkerProcess>();
  worker->index = index;
  worker->incarnation = incarnation;
  SessionSettings settings;
  settings.identity = IdentityOf(settings_.experiment);
  settings.experiment = settings_.experiment;
  settings.spec = Spec();
  settings.name = "worker-" + std::to_string(index);
  settings.device = "fake";
  settings.process = {"sim", 0, incarnation, "sim", now_ / kMillisecond};
  worker->session = Session::Make(std::move(settings), now_).value();
  worker->trainer =
      std::make_unique<FakeTrainer>(settings_.experiment.job.seed, &worker->session->shape(),
                                    Spec(), CarriesResidual(settings_.experiment));
  workers_[worker->session->peer_name()] = worker;
  worker_names_[index] = worker->session->peer_name();
  Tick(worker);
}

void Cluster::KillWorker(int index) {
  const auto name = worker_names_.find(index);
  if (name == worker_names_.end()) return;
  const bool restart = rng_.NextUniform() < settings_.faults.restart;
  // Somebody has to be left to finish the job.
  if (!restart && worker_names_.size() < 2) return;
  const auto worker = workers_.at(name->second);
  worker->alive = false;
  workers_.erase(name->second);
  worker_names_.erase(name);
  if (restart) RestartWorkerLater(index, worker->incarnation + 1);
}

void Cluster::RestartWorkerLater(int index, uint64_t incarnation) {
  At(now_ + RandomTime(kRestartWithin), [this, index, incarnation] {
    if (!worker_names_.contains(index)) StartWorker(index, incarnation);
  });
}

void Cluster::KillServer(int index) {
  if (!servers_[index]->alive) return;
  servers_[index]->alive = false;
  At(now_ + RandomTime(kRestartWithin), [this, index] { StartServer(index); });
}

void Cluster::Leave(int index) {
  const auto name = worker_names_.find(index);
  if (name == worker_names_.end()) return;
  const auto worker = workers_.at(name->second);
  if (std::exchange(worker->leaves, true)) return;  // asked twice it does not hand over
  In(worker, [this, worker] { Perform(worker, worker->session->Leave(now_)); });
}

void Cluster::LeaveServer(int index) {
  const auto server = servers_[index];
  if (index == 0) return;  // that would stop the job
  In(server, [this, server] { Perform(server, server->node->RequestStop(now_)); });
}

std::shared_ptr<Cluster::Process> Cluster::RandomProcess() {
  std::vector<std::shared_ptr<Process>> all(servers_.begin(), servers_.end());
  for (const auto& [name, worker] : workers_) all.push_back(worker);
  return all[rng_.NextBelow(all.size())];
}

void Cluster::Freeze(const std::shared_ptr<Process>& process, TimeUs until) {
  if (process->frozen || !process->alive) return;
  process->frozen = true;
  At(until, [this, process] {
    process->frozen = false;
    auto held = held_.extract(process);
    if (held.empty()) return;
    for (auto& run : held.mapped()) In(process, std::move(run));
  });
}

void Cluster::Cut(const std::shared_ptr<Process>& process) {
  // Both ways, or one of them.
  const uint64_t way = rng_.NextBelow(3);
  if (way != 1) process->deaf = true;
  if (way != 2) process->mute = true;
  At(now_ + RandomTime(settings_.faults.longest),
     [process] { process->deaf = process->mute = false; });
}

void Cluster::CutLink() {
  const int workers = settings_.experiment.cluster.workers;
  const std::pair<int, int> link(rng_.NextBelow(workers), rng_.NextBelow(servers_.size()));
  cut_links_.insert(link);
  At(now_ + RandomTime(settings_.faults.longest),
     [this, link] { cut_links_.erase(cut_links_.find(link)); });
}

void Cluster::PlanFaults() {
  const Faults& faults = settings_.faults;
  const auto plan = [&](int count, std::function<void()> fault) {
    for (int i = 0; i < count; ++i) At(RandomTime(faults.kill_within), fault);
  };
  const int workers = settings_.experiment.cluster.workers;
  plan(faults.kills, [this, workers] { KillWorker(static_cast<int>(rng_.NextBelow(workers))); });
  plan(faults.server_kills,
       [this] { KillServer(static_cast<int>(rng_.NextBelow(servers_.size()))); });
  plan(faults.leaves, [this, workers] { Leave(static_cast<int>(rng_.NextBelow(workers))); });
  plan(faults.server_leaves,
       [this] { LeaveServer(static_cast<int>(rng_.NextBelow(servers_.size()))); });
  plan(faults.freezes,
       [this] { Freeze(RandomProcess(), now_ + RandomTime(settings_.faults.longest)); });
  plan(faults.cuts, [this] { Cut(RandomProcess()); });
  plan(faults.links, [this] { CutLink(); });
}

// --- Time.

void Cluster::Tick(const std::shared_ptr<ServerProcess>& server) {
  if (!server->alive) return;
  In(server, [this, server] {
    Perform(server, server->node->Tick(now_));
    if (!server->alive) return;
    At(std::max(server->node->NextDeadline(), now_ + 100 * kMillisecond),
       [this, server] { Tick(server); });
  });
}

void Cluster::Tick(const std::shared_ptr<WorkerProcess>& worker) {
  if (!worker->alive) return;
  In(worker, [this, worker] {
    Perform(worker, worker->session->Tick(now_, {}));
    if (!worker->alive) return;
    At(std::clamp(worker->session->NextDeadline(), now_ + 20 * kMillisecond, now_ + kSecond),
       [this, worker] { Tick(worker); });
  });
}

// --- Messages.

void Cluster::SendToServer(const std::shared_ptr<WorkerProcess>& worker, int server,
                           Message message) {
  if (cut_links_.contains({worker->index, server})) return;
  if (settings_.interference == nullptr) {
    DeliverToServer(worker, server, std::move(message));
    return;
  }
  for (Message& sent :
       settings_.interference->FromWorker(worker->index, server, std::move(message))) {
    DeliverToServer(worker, server, std::move(sent));
  }
}

void Cluster::DeliverToServer(const std::shared_ptr<WorkerProcess>& worker, int server,
                              Message message) {
  const PeerName from = worker->session->peer_name();
  const auto to = servers_[server];
  Deliver(worker, to, [this, from, to, message = std::move(message)] {
    Message arrived = message;
    Mutate(*to, &arrived);
    const uint32_t generation = to->node->generation();
    ServerActions actions = to->node->OnMessage(from, arrived, now_);
    invariants_->OnAnswered(message.header, generation, actions);
    Perform(to, std::move(actions));
  });
}

void Cluster::SendFromServer(const std::shared_ptr<ServerProcess>& server, const PeerName& name,
                             Message message) {
  const int index = server->index;
  for (const auto& to : servers_) {
    if (ServerPeer(to->index) != name) continue;
    if (settings_.interference != nullptr) {
      settings_.interference->BetweenServers(index, to->index, message);
    }
    Deliver(server, to, [this, index, to, message = std::move(message)] {
      Perform(to, to->node->OnMessage(ServerPeer(index), message, now_));
    });
    return;
  }
  const auto found = workers_.find(name);
  if (found == workers_.end()) return;
  const auto worker = found->second;
  if (cut_links_.contains({worker->index, index})) return;
  if (settings_.mutation == Mutation::kStateLostOnTheWay && message.header.type() == wire::STATE) {
    message.payload = {};
  }
  if (settings_.mutation == Mutation::kAcknowledgementsLost && message.header.type() == wire::ACK &&
      now_ > 200 * kMillisecond) {
    return;
  }
  if (settings_.interference != nullptr) {
    settings_.interference->ToWorker(index, worker->index, message);
  }
  Deliver(server, worker, [this, index, worker, message = std::move(message)] {
    Perform(worker, worker->session->OnMessage(index, message, now_));
  });
}

// --- Bugs.

void Cluster::Mutate(const ServerProcess& to, Message* message) const {
  if (settings_.mutation == Mutation::kOldGenerationCounts &&
      message->header.type() == wire::PUSH) {
    message->header.set_generation(to.node->generation());
  }
}

void Cluster::Mutate(ChunkWork* work) const {
  if (work->round != 2) return;
  auto& contributions = work->contributions;
  switch (settings_.mutation) {
    case Mutation::kContributionTwice:
      if (!contributions.empty()) contributions.push_back(contributions.back());
      break;
    case Mutation::kContributionLeftOut:
      if (!contributions.empty()) contributions.pop_back();
      break;
    case Mutation::kRoundSkipped:
      work->round = 3;
      break;
    default:
      break;
  }
}

// --- What the machines ask for.

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, JoinAction join) {
  join.hello.message.header.mutable_hello()->set_folder(disk_->token);
  SendFromServer(server, join.hello.to, std::move(join.hello.message));
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const ComputeAction& compute) {
  const std::shared_ptr<ChunkWork> work = compute.work;
  Mutate(work.get());
  invariants_->OnWork(server->incarnation, *work);
  At(now_ + kComputeChunk + RandomTime(200), [this, server, work] {
    work->Run();
    In(server, [this, server, work] { Perform(server, server->node->OnComputed(*work, now_)); });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, SaveAction save) {
  const bool fails = rng_.NextUniform() < settings_.faults.disk;
  const auto saved = std::make_shared<SaveAction>(std::move(save));
  At(now_ + kSaveFile, [this, server, saved, fails] {
    if (!server->alive) return;
    const auto& header = saved->header;
    Result<SavedShardFile> file = SavedShardFile{1, 1};
    if (fails) {
      file = ResourceExhausted("the disk is full");
    } else {
      // Copied only now: whoever wrote to a shared array since would be found out.
      disk_->files[{header.version, header.generation}][server->index] = DeepCopy(saved->snapshot);
    }
    In(server, [this, server, header, attempt = saved->attempt, file] {
      Perform(server,
              server->node->OnSaved(header.generation, header.version, attempt, file, now_));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, CommitAction commit) {
  checkpoint::Manifest& manifest = commit.manifest;
  const int64_t version = manifest.version();
  manifest.set_name("round-" + std::to_string(version));
  auto& files = disk_->files[{version, manifest.generation()}];
  if (settings_.mutation == Mutation::kManifestTooEarly) files.erase(files.begin());
  std::set<std::string> there;
  for (const auto& [of, snapshot] : files) {
    there.insert(ShardFileName(of, settings_.servers, manifest.generation()));
  }
  invariants_->OnManifest(manifest, there);
  disk_->manifests[version] = manifest;
  // Checkpoints of later versions are of a past that the job went back from.
  disk_->manifests.erase(disk_->manifests.upper_bound(version), disk_->manifests.end());
  At(now_ + kWriteManifest, [this, server, generation = manifest.generation(), version] {
    In(server, [this, server, generation, version] {
      result_.done = now_;
      Perform(server, server->node->OnCommitted(generation, version, OkStatus(), now_));
    });
  });
}

// A checkpoint that the job goes on from, with what has changed since (checkpoint.continue).
checkpoint::Manifest Cluster::Continued(checkpoint::Manifest manifest) const {
  const auto changes = SettingChanges(manifest.experiment_text(), settings_.experiment);
  if (changes.empty()) return manifest;
  const auto continuation = ContinuationOf(manifest, settings_.experiment, changes);
  CHECK(continuation.ok()) << continuation.status().message();
  *manifest.add_continuations() = *continuation;
  return manifest;
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const RestoreAction& restore) {
  ShardSnapshot all;
  for (const auto& [version, manifest] : disk_->manifests) {
    if (manifest.name() != restore.checkpoint) continue;
    all.version = version;
    for (const auto& [from, snapshot] : disk_->files[{version, manifest.generation()}]) {
      const ShardSnapshot copy = DeepCopy(snapshot);
      all.arrays.insert(all.arrays.end(), copy.arrays.begin(), copy.arrays.end());
    }
    CHECK(Adapt(manifest, settings_.experiment, &all).ok());
  }
  At(now_ + kMillisecond, [this, server, generation = restore.generation, all] {
    In(server, [this, server, generation, all] {
      Perform(server, server->node->OnRestored(generation, all, now_));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server,
                 const ChooseCheckpointAction& choose) {
  disk_->generation = std::max(disk_->generation, choose.generation);
  std::optional<checkpoint::Manifest> manifest;
  for (const auto& [version, candidate] : disk_->manifests) {
    if (version <= choose.newest) manifest = Continued(candidate);
  }
  At(now_ + 2 * kMillisecond, [this, server, generation = choose.generation, manifest] {
    In(server, [this, server, generation, manifest] {
      Perform(server, server->node->OnChosen(generation, manifest, now_));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server,
                 const ReserveGenerationAction& reserve) {
  disk_->generation = std::max(disk_->generation, reserve.generation);
  At(now_ + kMillisecond, [this, server, generation = reserve.generation] {
    In(server,
       [this, server, generation] { Perform(server, server->node->OnReserved(generation, now_)); });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, SendAction send) {
  SendFromServer(server, send.to, std::move(send.message));
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const KeepEvaluationAction& keep) {
  At(now_ + kWriteManifest, [this, server, keep] {
    if (!server->alive) return;
    const auto found = disk_->manifests.find(keep.version);
    if (found != disk_->manifests.end() && found->second.generation() >= keep.since) {
      *found->second.mutable_evaluation() = keep.evaluation;
    }
    In(server, [this, server] { Perform(server, server->node->OnKept(now_)); });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>&, const WentOnAction& on) {
  ForgetPoints(on.version);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const WentBackAction& back) {
  ForgetPoints(back.version);
  invariants_->OnWentBack(server->node->generation(), back.version,
                          disk_->manifests.contains(back.version));
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, RoundClosedAction closed) {
  if (settings_.mutation == Mutation::kSamplesTwice) {
    closed.metrics.set_samples(closed.metrics.samples() * 2);
  }
  invariants_->OnRoundClosed(server->node->generation(), closed);
  result_.rounds.push_back(closed.round);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>&, const CurvePointAction& point) {
  result_.points.push_back(point);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>&, const EpochEvaluatedAction& epoch) {
  invariants_->OnEpoch(epoch);
  result_.done = now_;
  // An epoch that is trained again after the job went back is evaluated again.
  std::erase_if(result_.epochs, [&](const auto& e) { return e.epoch == epoch.epoch; });
  result_.epochs.push_back(epoch);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const ExitAction& exit) {
  server->alive = false;
  server->status = exit.status;
  const int index = server->index;
  if (index == 0) {
    over_ = true;
  } else if (exit.status.code() == StatusCode::kUnavailable) {  // as a scheduler would
    At(now_ + RandomTime(kRestartWithin), [this, index] { StartServer(index); });
  }
}

void Cluster::Perform(const std::shared_ptr<ServerProcess>& server, ServerActions actions) {
  for (ServerAction& action : actions) {
    std::visit([&](auto& one) { Do(server, std::move(one)); }, action);
  }
}

void Cluster::After(TimeUs time, const std::shared_ptr<WorkerProcess>& worker,
                    std::function<WorkerActions()> result) {
  At(now_ + time, [this, worker, result = std::move(result)] {
    In(worker, [this, worker, result] { Perform(worker, result()); });
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, SendToServerAction send) {
  SendToServer(worker, send.server, std::move(send.message));
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const InitialiseAction&) {
  WorkerProcess& process = *worker;
  After(kMillisecond, worker, [this, &process] {
    return process.session->OnInitialised({process.trainer->InitialWeights(), {}}, now_);
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const InstallAction& install) {
  worker->trainer->Install(install);
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const AdoptAction& adopt) {
  worker->trainer->Adopt(adopt);
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const TrainAction& train) {
  Session& session = *worker->session;
  const auto block = std::make_shared<TrainedBlock>(worker->trainer->Train(train));
  const bool slow = worker->index == 0 && settings_.slow_block > 0 && RandomTime(4) == 0;
  const TimeUs time = kTrainBlock + RandomTime(kTrainBlock) + (slow ? settings_.slow_block : 0);
  // Some of the chunks, others in each block, are there before the block is.
  After(time / 2, worker, [this, &session, block, train] {
    std::vector<CodedChunk> early;
    for (const Chunk& chunk : session.shape().map.chunks()) {
      if (chunk.index == 0 || block->contributions[chunk.index].empty()) continue;
      if ((chunk.index + train.round.round + train.partition) % 3 == 0) continue;
      early.push_back({chunk.index, block->contributions[chunk.index]});
    }
    return session.OnCoded(std::move(early), now_);
  });
  After(time, worker, [this, &session, block, time] {
    ++result_.blocks_trained;
    block->times.compute_ms = static_cast<double>(time) * 1e-3;
    return session.OnTrained(std::move(*block), now_);
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const EvaluateAction& evaluate) {
  WorkerProcess& process = *worker;
  After(kEvaluateSlice, worker, [this, &process, evaluate] {
    return process.session->OnEvaluated(process.trainer->Evaluate(evaluate), now_);
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const DropAction& drop) {
  worker->trainer->Drop(drop.partition);
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const LeaveAction& leave) {
  worker->alive = false;
  worker_names_.erase(worker->index);
  workers_.erase(worker->session->peer_name());
  if (leave.status.ok() || over_) return;
  LOG(INFO) << leave.status.message();
  if (leave.status.code() == StatusCode::kUnavailable) {  // as a scheduler would
    RestartWorkerLater(worker->index, worker->incarnation + 1);
  }
}

void Cluster::Perform(const std::shared_ptr<WorkerProcess>& worker, WorkerActions actions) {
  for (WorkerAction& action : actions) {
    if (!worker->alive) return;
    std::visit([&](auto& one) { Do(worker, std::move(one)); }, action);
  }
}

SimResult Cluster::Run() {
  servers_.resize(settings_.servers);
  for (int i = 0; i < settings_.servers; ++i) StartServer(i);
  for (int i = 0; i < settings_.experiment.cluster.workers; ++i) {
    At(1, [this, i] { StartWorker(i, 1); });
  }
  PlanFaults();
  if (settings_.late_worker_at >= 0) {
    At(settings_.late_worker_at, [this] { StartWorker(settings_.experiment.cluster.workers, 1); });
  }
  if (settings_.all_workers_leave_at >= 0) {
    At(settings_.all_workers_leave_at, [this] {
      for (int i = 0; i < settings_.experiment.cluster.workers; ++i) Leave(i);
    });
  }
  if (settings_.all_workers_die_at >= 0) {
    At(settings_.all_workers_die_at, [this] {
      for (const auto& [name, worker] : workers_) worker->alive = false;
      workers_.clear();
      worker_names_.clear();
    });
  }
  if (settings_.server_0_dies_at >= 0) At(settings_.server_0_dies_at, [this] { KillServer(0); });
  if (settings_.stop_at >= 0) {
    At(settings_.stop_at, [this] { Perform(servers_[0], servers_[0]->node->RequestStop(now_)); });
  }
  while (!events_.empty() && !over_ && now_ < settings_.time_limit) {
    Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
  }
  if (!over_) {
    std::string what = "the job does not end; server 0 waits for: " +
                       servers_[0]->node->Describe(now_).waits_for();
    for (const auto& [name, worker] : workers_) {
      what += "; " + name + ": " + worker->session->StateInWords();
    }
    invariants_->Violation(what);
  }
  result_.status = servers_[0]->status;
  result_.ended = now_;
  for (const auto& server : servers_) {
    if (server->alive) result_.left_behind.push_back("server " + std::to_string(server->index));
  }
  for (const auto& [name, worker] : workers_) result_.left_behind.push_back(name);
  result_.generation = servers_[0]->node->generation();
  result_.violations = invariants_->violations();
  CollectFinal(&result_);
  return std::move(result_);
}

// What the newest checkpoint holds.
void Cluster::CollectFinal(SimResult* result) {
  const ParameterLayout layout = ParameterLayout::Make(settings_.tensors).value();
  result->start.assign(layout.size(), 0.0f);
  result->weights.assign(layout.size(), 0.0f);
  if (disk_->manifests.empty()) return;
  const auto& [version, manifest] = *disk_->manifests.rbegin();
  result->version = version;
  for (StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const auto& [server, snapshot] : disk_->files[{version, manifest.generation()}]) {
      for (const StateArray& array : snapshot.arrays) {
        if (array.kind != kind) continue;
        // Where no weights are kept apart they are what blocks start from.
        std::copy(array.numbers.begin(), array.numbers.end(),
                  result->weights.begin() + array.begin);
        if (kind == StateKind::kStart) {
          std::copy(array.numbers.begin(), array.numbers.end(),
                    result->start.begin() + array.begin);
        }
      }
    }
  }
}

}  // namespace kumo::sim
