#include "tests/sim/cluster.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/resume_point.h"
#include "common/job/round_policy.h"
#include "server/disks/generation_file.h"
#include "tests/common/job/loss_and_accuracy.h"
#include "tests/sim/processes.h"

namespace kumo::sim {
namespace {

constexpr TimeUs kRestartWithin = 3 * kSecond;
constexpr TimeUs kConnectsWithin = 2 * kSecond;

// Fields with texts for people. The other strings are names, which count.
constexpr std::string_view kTexts[] = {"experiment_text", "failure", "reason", "state",
                                       "waits_for"};

// Replaces the texts for people in a message, and in its parts, by a mark: it counts that there is
// a text, but not its words.
void HideTexts(google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const Field*> fields;  // that are set
  reflection.ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (field->cpp_type() == Field::CPPTYPE_STRING && !field->is_repeated() &&
        std::ranges::find(kTexts, std::string_view(field->name())) != std::end(kTexts)) {
      reflection.SetString(message, field, "text");
    }
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      HideTexts(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      HideTexts(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace

Cluster::Cluster(SimSettings settings, Disk* disk)
    : settings_(std::move(settings)),
      disk_(disk ? disk : &own_disk_),
      rng_(settings_.seed, RngPurpose::kSimulation) {
  settings_.experiment.cluster.servers.assign(settings_.servers, "ipc://sim");
  settings_.experiment.output.directory = "/out";
  const JobSpec spec = Spec();
  const auto weightless = [policy = RoundPolicy(settings_.experiment),
                           seed = settings_.experiment.job.seed](
                              const RoundPlan& round, const Chunk& chunk, int partition) {
    return policy.MayWeigh(round, chunk.segment) &&
           FakeTrainer::WeightOf(seed, round.round, partition) == 0;
  };
  invariants_.emplace(PlanFor(settings_.experiment, spec).value(),
                      ShardMapFor(settings_.experiment, spec.layout, settings_.servers),
                      settings_.validation_samples, weightless);
}

Cluster::~Cluster() = default;

JobSpec Cluster::Spec() const {
  JobSpec spec;
  spec.layout = ParameterLayout::Make(settings_.tensors).value();
  spec.metrics = test::LossAndAccuracy();
  spec.train_samples = settings_.train_samples;
  spec.validation_samples = settings_.validation_samples;
  spec.optimiser_slots = RoundPolicy(settings_.experiment).carried().optimiser_slots;
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

FileSystem* Cluster::OwnFiles(int index) {
  auto& files = disk_->own[index];
  if (!files) {
    files = std::make_shared<MemoryFileSystem>();
    CHECK(files->CreateDirectories(settings_.experiment.output.directory).ok());
  }
  return files.get();
}

void Cluster::StartServer(int index) {
  const auto former = servers_[index];
  auto server = std::make_shared<ServerProcess>();
  server->index = index;
  server->incarnation = former ? former->incarnation + 1 : 1;
  server->again = former != nullptr;
  servers_[index] = server;
  if (HasPrivateDisks()) {
    server->disk = std::make_unique<kumo::Disk>(OwnFiles(index), settings_.experiment);
    server->files = disk_->own[index];
    const auto survey = server->disk->NeededSurvey(IdentityOf(settings_.experiment));
    if (index == 0 && survey)
      server->survey = std::make_unique<CheckpointSurvey>(*survey, Now(*server));
  }
  if (!server->survey) StartNode(server);
  Tick(server);
}

// What server 0 goes on from, as the program finds it.
Status Cluster::ReadOwnDisk(ServerProcess* server, ServerNodeSettings* settings) {
  FileSystem* const files = OwnFiles(0);
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, FindCheckpointToResume(*files, settings_.experiment));
  settings->restored = std::move(point.manifest);
  settings->finished = point.finished;
  const uint32_t used = server->survey ? server->survey->generation() : 0;
  KUMO_ASSIGN_OR_RETURN(
      settings->generation,
      ReserveGeneration(*files, settings_.experiment,
                        std::max(settings->restored ? settings->restored->generation() : 0, used)));
  const int64_t from = settings->restored ? settings->restored->version() : -1;
  disk_->manifests.erase(disk_->manifests.upper_bound(from), disk_->manifests.end());
  return OkStatus();
}

void Cluster::StartNode(const std::shared_ptr<ServerProcess>& server) {
  const int index = server->index;
  ServerNodeSettings settings;
  settings.index = index;
  settings.identity = IdentityOf(settings_.experiment);
  settings.experiment = settings_.experiment;
  settings.process = {"sim", 0, server->incarnation, "sim", now_ / kMillisecond};
  if (index == 0) {
    if (HasPrivateDisks()) {
      const Status read = ReadOwnDisk(server.get(), &settings);
      CHECK(read.ok()) << read.message();
    } else {
      if (!disk_->manifests.empty()) {
        const checkpoint::Manifest& newest = disk_->manifests.rbegin()->second;
        settings.restored = Continued(newest);
        settings.finished =
            settings.restored->continuations_size() == newest.continuations_size() &&
            IsFinished(newest, settings_.experiment);
      }
      settings.generation = ++disk_->generation;
    }
    settings.folder = disk_->token = settings.generation;
    // Where versions are kept twice, it is known later which of them count.
    if (server->again && !settings_.experiment.cluster.KeepsVersionsTwice()) {
      ForgetPoints(settings.restored ? settings.restored->version() : -1);
    }
    if (server->again) {
      invariants_->OnWentBack(settings.generation,
                              settings.restored ? settings.restored->version() : 0, true);
    }
  }
  server->node = std::make_unique<ServerNode>(settings, Now(*server));
}

void Cluster::GoOnFromSurvey(const std::shared_ptr<ServerProcess>& server) {
  if (!server->alive || server->node || !server->survey->outcome()) return;
  if (server->survey->outcome()->ok()) {
    StartNode(server);
  } else {
    Do(server, ExitAction{*server->survey->outcome()});
  }
}

// A disk whose files are on others': where versions are kept twice any one, else that of another
// server than 0.
void Cluster::LoseDisk() {
  const int first = settings_.experiment.cluster.KeepsVersionsTwice() ? 0 : 1;
  if (settings_.servers < 2) return;
  const int index = first + static_cast<int>(rng_.NextBelow(settings_.servers - first));
  KillServer(index);
  // Its process may have left; what it writes until it is started again is lost, too.
  if (servers_[index]->alive) return;
  disk_->own[index] = nullptr;
  result_.lost_disk = index;
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
  worker->session = Session::Make(std::move(settings), Now(*worker)).value();
  worker->trainer = std::make_unique<FakeTrainer>(settings_.experiment.job.seed,
                                                  &worker->session->shape(), Spec());
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
  if (settings_.faults.closes) ReportConnection(worker->session->peer_name(), false);
  if (restart) RestartWorkerLater(index, worker->incarnation + 1);
}

// Server 0's transport sees the end of a connection, or another connection.
void Cluster::ReportConnection(const PeerName& worker, bool connected) {
  const auto server = servers_[0];
  At(now_ + settings_.faults.latency, [this, server, worker, connected] {
    In(server, [this, server, worker, connected] {
      if (server->node) server->node->OnPeerConnection(worker, connected, Now(*server));
    });
  });
}

void Cluster::ResetConnection(int index) {
  const auto name = worker_names_.find(index);
  if (name == worker_names_.end()) return;
  const auto worker = workers_.at(name->second);
  ReportConnection(name->second, false);
  At(now_ + RandomTime(kConnectsWithin), [this, worker] {
    if (!worker->alive) return;
    ReportConnection(worker->session->peer_name(), true);
    In(worker, [this, worker] { Perform(worker, worker->session->OnConnected(0, Now(*worker))); });
  });
}

void Cluster::RestartWorkerLater(int index, uint64_t incarnation) {
  At(now_ + RandomTime(kRestartWithin), [this, index, incarnation] {
    if (!worker_names_.contains(index)) StartWorker(index, incarnation);
  });
}

void Cluster::KillServer(int index) {
  if (!servers_[index]->alive) return;
  servers_[index]->alive = false;
  RestartServerLater(index);
}

void Cluster::RestartServerLater(int index) {
  At(now_ + RandomTime(kRestartWithin), [this, index] { StartServer(index); });
}

void Cluster::Leave(int index) {
  const auto name = worker_names_.find(index);
  if (name == worker_names_.end()) return;
  const auto worker = workers_.at(name->second);
  if (std::exchange(worker->leaves, true)) return;  // asked twice it does not hand over
  In(worker, [this, worker] { Perform(worker, worker->session->Leave(Now(*worker))); });
}

void Cluster::LeaveServer(int index) {
  const auto server = servers_[index];
  if (index == 0) return;  // that would stop the job
  In(server, [this, server] { Perform(server, server->node->RequestStop(Now(*server))); });
}

std::shared_ptr<Cluster::Process> Cluster::RandomProcess() {
  std::vector<std::shared_ptr<Process>> all(servers_.begin(), servers_.end());
  for (const auto& [name, worker] : workers_) all.push_back(worker);
  return all[rng_.NextBelow(all.size())];
}

TimeUs Cluster::Now(const Process& process) const { return now_ - process.stopped; }

TimeUs Cluster::When(const Process& process, TimeUs deadline) const {
  constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max() / 2;
  return std::min(deadline, kNever) + process.stopped;
}

void Cluster::Freeze(const std::shared_ptr<Process>& process, TimeUs until) {
  if (process->frozen || !process->alive) return;
  process->frozen = true;
  At(until, [this, process, since = now_] {
    process->frozen = false;
    // As a RunningClock does.
    if (now_ - since > RunningClock::kLongestGap) process->stopped += now_ - since;
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
  plan(faults.disk_losses, [this] { LoseDisk(); });
  plan(faults.resets,
       [this, workers] { ResetConnection(static_cast<int>(rng_.NextBelow(workers))); });
}

// --- Time.

void Cluster::Tick(const std::shared_ptr<ServerProcess>& server) {
  if (!server->alive) return;
  In(server, [this, server] {
    if (!server->node) {
      Perform(server, server->survey->Tick(Now(*server)));
      GoOnFromSurvey(server);
      if (server->alive) At(now_ + 100 * kMillisecond, [this, server] { Tick(server); });
      return;
    }
    Perform(server, server->node->Tick(Now(*server)));
    if (!server->alive) return;
    At(std::max(When(*server, server->node->NextDeadline()), now_ + 100 * kMillisecond),
       [this, server] { Tick(server); });
  });
}

void Cluster::Tick(const std::shared_ptr<WorkerProcess>& worker) {
  if (!worker->alive) return;
  In(worker, [this, worker] {
    Perform(worker, worker->session->Tick(Now(*worker), {}));
    if (!worker->alive) return;
    At(std::clamp(When(*worker, worker->session->NextDeadline()), now_ + 20 * kMillisecond,
                  now_ + kSecond),
       [this, worker] { Tick(worker); });
  });
}

// --- Messages.

// The header is hashed as it would be sent, with maps in the order of their keys.
void Cluster::Record(int from, const std::string& to, const Message& message) {
  if (!settings_.hashes_messages) return;
  wire::Header header = message.header;
  HideTexts(&header);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    header.SerializePartialToCodedStream(&coded);
  }
  const std::span<const std::byte> payload = message.payload.bytes;
  messages_hash_.Add(static_cast<uint64_t>(now_));
  messages_hash_.Add(static_cast<uint64_t>(from));
  for (const std::string_view part :
       {std::string_view(to), std::string_view(bytes),
        std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size())}) {
    messages_hash_.Add(static_cast<uint64_t>(part.size()));
    messages_hash_.Add(part);
  }
}

void Cluster::SendToServer(const std::shared_ptr<WorkerProcess>& worker, int server,
                           Message message) {
  Record(-1 - worker->index, ServerPeer(server), message);
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
    if (!to->node) return;
    Message arrived = message;
    Mutate(*to, &arrived);
    const uint32_t generation = to->node->generation();
    ServerActions actions = to->node->OnMessage(from, arrived, Now(*to));
    invariants_->OnAnswered(message.header, generation, actions);
    Perform(to, std::move(actions));
  });
}

void Cluster::SendFromServer(const std::shared_ptr<ServerProcess>& server, const PeerName& name,
                             Message message) {
  const int index = server->index;
  Record(index, name, message);
  for (const auto& to : servers_) {
    if (ServerPeer(to->index) != name) continue;
    if (settings_.interference != nullptr) {
      settings_.interference->BetweenServers(index, to->index, message);
    }
    Deliver(server, to, [this, index, to, message = std::move(message)] {
      ToMachine(to, ServerPeer(index), message);
    });
    return;
  }
  const auto found = workers_.find(name);
  if (found == workers_.end()) return;
  const auto worker = found->second;
  if (cut_links_.contains({worker->index, index})) return;
  Mutate(&message);
  if (settings_.mutation == Mutation::kAcknowledgementsLost && message.header.type() == wire::ACK &&
      now_ > 200 * kMillisecond) {
    return;
  }
  if (settings_.interference != nullptr &&
      !settings_.interference->ToWorker(index, worker->index, message)) {
    return;
  }
  Deliver(server, worker, [this, index, worker, message = std::move(message)] {
    Perform(worker, worker->session->OnMessage(index, message, Now(*worker)));
  });
}

// --- Bugs.

void Cluster::Mutate(const ServerProcess& to, Message* message) const {
  if (settings_.mutation == Mutation::kOldGenerationCounts &&
      message->header.type() == wire::PUSH) {
    message->header.set_generation(to.node->generation());
  }
}

void Cluster::Mutate(Message* message) const {
  if (message->header.type() != wire::STATE) return;
  const CarriedArrays carried = RoundPolicy(settings_.experiment).carried();
  const bool is_way = carried.way > 0 && message->header.carried_array() == carried.residual;
  if (settings_.mutation == Mutation::kStateLostOnTheWay ||
      (settings_.mutation == Mutation::kWayLost && is_way)) {
    message->payload = {};
  }
}

void Cluster::Mutate(InstallAction* install) const {
  if (settings_.mutation != Mutation::kRelayWithoutOne || !install->relay) return;
  if (!install->relay->samples.empty()) install->relay->samples.pop_back();
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
    case Mutation::kSpanOfOneRound: {
      if (contributions.empty()) break;
      const Experiment& e = settings_.experiment;
      const JobPlan plan = PlanFor(e, Spec()).value();
      const ShardMap map = ShardMapFor(e, Spec().layout, settings_.servers);
      const RoundPlan round = plan.Round(work->round);
      const int64_t span = plan.SpanOf(round, map.chunks()[work->chunk]).samples.size();
      for (auto& one : contributions) one.weight = one.weight * round.samples.size() / span;
      break;
    }
    default:
      break;
  }
}

SimResult Cluster::Run() {
  std::optional<RareWays> rare_ways;
  if (settings_.rare_ways) rare_ways.emplace(settings_.seed);
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
  if (settings_.all_stop_at >= 0) {
    At(settings_.all_stop_at, [this] {
      const TimeUs until = now_ + settings_.all_stop_for;
      for (const auto& server : servers_) Freeze(server, until);
      for (const auto& [name, worker] : workers_) Freeze(worker, until);
    });
  }
  if (settings_.stop_at >= 0) {
    At(settings_.stop_at, [this] {
      if (servers_[0]->node) {
        Perform(servers_[0], servers_[0]->node->RequestStop(Now(*servers_[0])));
      } else if (servers_[0]->alive) {
        Do(servers_[0], ExitAction{Unavailable("stopped while it asked the others' disks")});
      }
    });
  }
  while (!events_.empty() && !over_ && now_ < settings_.time_limit) {
    Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
  }
  if (!over_) {
    std::string what =
        "the job does not end; server 0 waits for: " +
        (servers_[0]->node ? servers_[0]->node->Describe(Now(*servers_[0])).waits_for()
                           : servers_[0]->survey->WaitsFor());
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
  if (servers_[0]->node) result_.generation = servers_[0]->node->generation();
  CollectFinal(&result_);
  result_.messages_hash = messages_hash_.value();
  result_.violations = invariants_->violations();
  if (rare_ways) result_.rare_ways = rare_ways->counts();
  return std::move(result_);
}

// What the newest checkpoint holds: on the disks, and with disks of their own on server 0's alone.
std::vector<ShardSnapshot> Cluster::FinalSnapshots() {
  const auto& [version, manifest] = *disk_->manifests.rbegin();
  std::vector<ShardSnapshot> snapshots;
  if (!HasPrivateDisks()) {
    for (auto& [server, snapshot] : disk_->files[{version, manifest.generation()}]) {
      snapshots.push_back(snapshot);
    }
    return snapshots;
  }
  const std::string folder = JoinPath(settings_.experiment.output.directory, "checkpoints");
  const auto whole = VerifyCheckpoint(*OwnFiles(0), folder, CheckpointName(version));
  if (!whole.ok()) {
    // A job that did not come to its end may have lost the disk since.
    const bool may_be_lost = settings_.faults.disk_losses > 0 && !result_.status.ok();
    if (!may_be_lost) invariants_->Violation("server 0's disk: " + whole.status().message());
    return snapshots;
  }
  const Range all = {0, ParameterLayout::Make(settings_.tensors).value().size()};
  snapshots.push_back(ReadSnapshot(*OwnFiles(0), folder, *whole, all).value());
  return snapshots;
}

void Cluster::CollectFinal(SimResult* result) {
  const ParameterLayout layout = ParameterLayout::Make(settings_.tensors).value();
  result->start.assign(layout.size(), 0.0f);
  result->weights.assign(layout.size(), 0.0f);
  if (disk_->manifests.empty()) return;
  result->version = disk_->manifests.rbegin()->first;
  const std::vector<ShardSnapshot> snapshots = FinalSnapshots();
  for (StateKind kind : {StateKind::kStart, StateKind::kWeights}) {
    for (const ShardSnapshot& snapshot : snapshots) {
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
