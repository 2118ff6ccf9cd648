#include "tests/sim/cluster.h"

#include <algorithm>

#include <glog/logging.h>

#include "common/options/experiment_text.h"

namespace kumo::sim {
namespace {

constexpr TimeUs kComputeChunk = 50;
constexpr TimeUs kSaveFile = 20 * kMillisecond;
constexpr TimeUs kTrainBlock = 30 * kMillisecond;
constexpr TimeUs kEvaluateSlice = 5 * kMillisecond;

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

struct Cluster::ServerProcess {
  int index = 0;
  std::unique_ptr<ServerNode> node;
  bool alive = true;
  Status status;
  TimeUs tick_at = 0;
  ShardSnapshot last;  // of the newest version that was saved
};

struct Cluster::WorkerProcess {
  int index = 0;
  uint64_t incarnation = 0;
  std::optional<Session> session;
  std::unique_ptr<FakeTrainer> trainer;
  bool alive = true;
  TimeUs tick_at = 0;
};

Cluster::Cluster(SimSettings settings, Disk* disk)
    : settings_(std::move(settings)), disk_(disk), rng_(settings_.seed, RngPurpose::kSimulation) {}

Cluster::~Cluster() = default;

JobIdentity Cluster::Identity() const {
  JobIdentity identity;
  identity.job_name = "sim";
  identity.experiment_text = ExperimentText(settings_.experiment);
  identity.experiment_hash = ExperimentHash(settings_.experiment);
  identity.servers = settings_.servers;
  identity.chunk_kib = settings_.experiment.cluster.chunk_kib;
  return identity;
}

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

void Cluster::Deliver(std::function<void()> arrival) {
  ++result_.messages;
  const Faults& faults = settings_.faults;
  if (rng_.NextUniform() < faults.drop) return;
  const int copies = rng_.NextUniform() < faults.duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const TimeUs extra = faults.jitter > 0 ? static_cast<TimeUs>(rng_.NextBelow(faults.jitter)) : 0;
    At(now_ + faults.latency + extra, arrival);
  }
}

void Cluster::StartServer(int index) {
  auto server = std::make_unique<ServerProcess>();
  server->index = index;
  ServerNodeSettings settings;
  settings.index = index;
  settings.identity = Identity();
  settings.experiment = settings_.experiment;
  settings.host = "sim";
  settings.incarnation = 1;
  if (index == 0 && disk_ && !disk_->manifests.empty()) {
    settings.restored = disk_->manifests.rbegin()->second;
  }
  server->node = std::make_unique<ServerNode>(settings, now_);
  servers_.push_back(std::move(server));
  TickServer(index);
}

void Cluster::StartWorker(int index, uint64_t incarnation) {
  auto worker = std::make_shared<WorkerProcess>();
  worker->index = index;
  worker->incarnation = incarnation;
  SessionSettings settings;
  settings.identity = Identity();
  settings.experiment = settings_.experiment;
  settings.spec = Spec();
  settings.name = "worker-" + std::to_string(index);
  settings.host = "sim";
  settings.device = "fake";
  settings.incarnation = incarnation;
  worker->session = Session::Make(std::move(settings), now_).value();
  worker->trainer = std::make_unique<FakeTrainer>(settings_.experiment.job.seed, &*worker->session,
                                                  Spec(), CarriesResidual(settings_.experiment));
  workers_[worker->session->peer_name()] = worker;
  worker_names_[index] = worker->session->peer_name();
  TickWorker(worker);
}

void Cluster::Kill(int index) {
  const auto name = worker_names_.find(index);
  if (name == worker_names_.end() || over_) return;
  const bool restart = rng_.NextUniform() < settings_.faults.restart;
  // Somebody has to be left to finish the job.
  if (!restart && worker_names_.size() < 2) return;
  const auto worker = workers_.at(name->second);
  worker->alive = false;
  workers_.erase(name->second);
  worker_names_.erase(name);
  if (restart) {
    const uint64_t incarnation = worker->incarnation + 1;
    At(now_ + static_cast<TimeUs>(rng_.NextBelow(3 * kSecond)), [this, index, incarnation] {
      if (!over_) StartWorker(index, incarnation);
    });
  }
}

void Cluster::TickServer(int index) {
  ServerProcess* server = servers_[index].get();
  if (!server->alive) return;
  Perform(server, server->node->Tick(now_));
  const TimeUs next = std::max(server->node->NextDeadline(), now_ + 100 * kMillisecond);
  if (server->alive) At(next, [this, index] { TickServer(index); });
}

void Cluster::TickWorker(std::shared_ptr<WorkerProcess> worker) {
  if (!worker->alive) return;
  Perform(worker.get(), worker->session->Tick(now_));
  const TimeUs next =
      std::clamp(worker->session->NextDeadline(), now_ + 20 * kMillisecond, now_ + kSecond);
  if (worker->alive) At(next, [this, worker] { TickWorker(worker); });
}

void Cluster::SendToServer(WorkerProcess* worker, int server, Message message) {
  const PeerName from = worker->session->peer_name();
  Deliver([this, from, server, message = std::move(message)] {
    ServerProcess* to = servers_[server].get();
    if (to->alive) Perform(to, to->node->OnMessage(from, message, now_));
  });
}

void Cluster::SendFromServer(int server, const PeerName& to, Message message) {
  Deliver([this, server, to, message = std::move(message)] {
    for (auto& other : servers_) {
      if (ServerPeer(other->index) == to && other->alive) {
        Perform(other.get(), other->node->OnMessage(ServerPeer(server), message, now_));
        return;
      }
    }
    const auto found = workers_.find(to);
    if (found == workers_.end()) return;
    const std::shared_ptr<WorkerProcess> worker = found->second;
    Perform(worker.get(), worker->session->OnMessage(server, message, now_));
  });
}

void Cluster::Perform(ServerProcess* server, ServerActions actions) {
  const int index = server->index;
  for (ServerAction& action : actions) {
    if (auto* send = std::get_if<SendAction>(&action)) {
      SendFromServer(index, send->to, std::move(send->message));
    } else if (auto* compute = std::get_if<ComputeAction>(&action)) {
      const auto work = compute->work;
      At(now_ + kComputeChunk + static_cast<TimeUs>(rng_.NextBelow(200)), [this, index, work] {
        work->Run();
        if (servers_[index]->alive) {
          Perform(servers_[index].get(), servers_[index]->node->OnComputed(*work, now_));
        }
      });
    } else if (auto* save = std::get_if<SaveAction>(&action)) {
      const auto snapshot = std::make_shared<ShardSnapshot>(std::move(save->snapshot));
      At(now_ + kSaveFile, [this, index, snapshot] {
        // Copied only now: whoever wrote to a shared array since would be found out.
        if (disk_) disk_->files[snapshot->version][index] = DeepCopy(*snapshot);
        servers_[index]->last = DeepCopy(*snapshot);
        checkpoint::File file;
        file.set_name("shard-" + std::to_string(index));
        if (servers_[index]->alive) {
          Perform(servers_[index].get(),
                  servers_[index]->node->OnSaved(snapshot->version, file, now_));
        }
      });
    } else if (auto* commit = std::get_if<CommitAction>(&action)) {
      checkpoint::Manifest manifest = commit->manifest;
      manifest.set_name("round-" + std::to_string(manifest.version()));
      if (disk_) {
        if (static_cast<int>(disk_->files[manifest.version()].size()) < manifest.files_size()) {
          Violation("manifest of round " + std::to_string(manifest.version()) +
                    " names files that are not there");
        }
        disk_->manifests[manifest.version()] = manifest;
      }
      At(now_ + kMillisecond, [this, index, version = manifest.version()] {
        Perform(servers_[index].get(),
                servers_[index]->node->OnCommitted(version, OkStatus(), now_));
      });
    } else if (std::get_if<RestoreAction>(&action)) {
      ShardSnapshot all{disk_->manifests.rbegin()->first, {}};
      for (const auto& [from, snapshot] : disk_->files[all.version]) {
        const ShardSnapshot copy = DeepCopy(snapshot);
        all.arrays.insert(all.arrays.end(), copy.arrays.begin(), copy.arrays.end());
      }
      At(now_ + kMillisecond, [this, index, all] {
        Perform(servers_[index].get(), servers_[index]->node->OnRestored(all, now_));
      });
    } else if (auto* closed = std::get_if<RoundClosedAction>(&action)) {
      if (!result_.rounds.empty() && closed->round != result_.rounds.back() + 1) {
        Violation("round " + std::to_string(closed->round) + " closed after round " +
                  std::to_string(result_.rounds.back()));
      }
      const RoundPlan round = servers_[0]->node->plan()->Round(closed->round);
      if (closed->metrics.samples() != round.samples.size()) {
        Violation("round " + std::to_string(closed->round) + " has " +
                  std::to_string(closed->metrics.samples()) + " samples");
      }
      result_.rounds.push_back(closed->round);
    } else if (auto* epoch = std::get_if<EpochEvaluatedAction>(&action)) {
      if (epoch->validation.samples() != settings_.validation_samples) {
        Violation("an evaluation of " + std::to_string(epoch->validation.samples()) + " samples");
      }
      result_.epochs.push_back(*epoch);
    } else if (auto* exit = std::get_if<ExitAction>(&action)) {
      server->alive = false;
      server->status = exit->status;
      if (index == 0) over_ = true;
    }
  }
}

void Cluster::Perform(WorkerProcess* worker, WorkerActions actions) {
  const std::shared_ptr<WorkerProcess> self = [&] {
    const auto found = workers_.find(worker->session->peer_name());
    return found == workers_.end() ? nullptr : found->second;
  }();
  if (!self) return;
  for (WorkerAction& action : actions) {
    if (auto* send = std::get_if<SendToServerAction>(&action)) {
      SendToServer(worker, send->server, std::move(send->message));
    } else if (std::get_if<InitialiseAction>(&action)) {
      At(now_ + kMillisecond, [this, self] {
        if (!self->alive) return;
        Perform(self.get(), self->session->OnInitialised(self->trainer->InitialWeights(), now_));
      });
    } else if (auto* install = std::get_if<InstallAction>(&action)) {
      self->trainer->Install(*install);
    } else if (auto* adopt = std::get_if<AdoptAction>(&action)) {
      self->trainer->Adopt(*adopt);
    } else if (auto* train = std::get_if<TrainAction>(&action)) {
      const TimeUs time = kTrainBlock + static_cast<TimeUs>(rng_.NextBelow(kTrainBlock));
      const auto block = std::make_shared<TrainedBlock>(self->trainer->Train(*train));
      At(now_ + time, [this, self, block] {
        if (!self->alive) return;
        ++result_.blocks_trained;
        Perform(self.get(), self->session->OnTrained(std::move(*block), now_));
      });
    } else if (auto* evaluate = std::get_if<EvaluateAction>(&action)) {
      At(now_ + kEvaluateSlice, [this, self, evaluate = *evaluate] {
        if (!self->alive) return;
        Perform(self.get(), self->session->OnEvaluated(self->trainer->Evaluate(evaluate), now_));
      });
    } else if (auto* drop = std::get_if<DropAction>(&action)) {
      self->trainer->Drop(drop->partition);
    } else if (auto* leave = std::get_if<LeaveAction>(&action)) {
      if (!leave->status.ok() && !over_) LOG(INFO) << leave->status.message();
      self->alive = false;
      worker_names_.erase(self->index);
      workers_.erase(self->session->peer_name());
      return;
    }
  }
}

void Cluster::Violation(std::string what) { result_.violations.push_back(std::move(what)); }

SimResult Cluster::Run() {
  for (int i = 0; i < settings_.servers; ++i) StartServer(i);
  for (int i = 0; i < settings_.experiment.cluster.workers; ++i) StartWorker(i, 1);
  for (int i = 0; i < settings_.faults.kills; ++i) {
    const auto when = static_cast<TimeUs>(rng_.NextBelow(settings_.faults.kill_within));
    const int who = static_cast<int>(rng_.NextBelow(settings_.experiment.cluster.workers));
    At(when, [this, who] { Kill(who); });
  }
  if (settings_.late_worker_at >= 0) {
    At(settings_.late_worker_at, [this] { StartWorker(settings_.experiment.cluster.workers, 1); });
  }
  if (settings_.stop_at >= 0) {
    At(settings_.stop_at, [this] { servers_[0]->node->RequestStop(); });
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
    Violation(what);
  }
  result_.status = servers_[0]->status;
  result_.ended = now_;
  CollectFinal(&result_);
  return std::move(result_);
}

void Cluster::CollectFinal(SimResult* result) {
  const ParameterLayout layout = ParameterLayout::Make(settings_.tensors).value();
  result->start.assign(layout.size(), 0.0f);
  result->weights.assign(layout.size(), 0.0f);
  result->version = servers_[0]->last.version;
  for (StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const auto& server : servers_) {
      for (const StateArray& array : server->last.arrays) {
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
