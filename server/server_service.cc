#include "server/server_service.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <glog/logging.h>

#include "common/base/human_readable.h"
#include "common/base/process/signals.h"
#include "common/job/checkpoint/best.h"
#include "common/job/checkpoint/continuation.h"
#include "common/job/checkpoint/origin.h"
#include "server/job_progress.h"
#include "server/resume.h"

namespace kumo {
namespace {

constexpr TimeUs kLongestPoll = 100 * kMillisecond;
// Terminals and `timeout` signal a process and its group: that is one request.
constexpr TimeUs kSameRequest = 500 * kMillisecond;
// How long threads are waited for, longer than a slow disk takes: they must be gone before what
// they work on is.
constexpr int64_t kShutdownMs = 60'000;

// The address that a server listens at is what other processes connect to, unless told otherwise.
ZmqTransportOptions TransportOptions(const ServerNodeSettings& settings) {
  ZmqTransportOptions options;
  options.name = ServerPeer(settings.index);
  options.framing.job = settings.identity.JobId();
  options.framing.max_payload_bytes = settings.experiment.cluster.chunk_kib * 1024 + 4096;
  options.insecure = settings.experiment.cluster.insecure;
  return options;
}

double Mean(double sum, int64_t samples) {
  return samples > 0 ? sum / static_cast<double>(samples) : 0.0;
}

}  // namespace

Result<std::unique_ptr<ServerService>> ServerService::Make(ServerNodeSettings settings,
                                                           const std::string& bind_address,
                                                           FileSystem* files, const Clock* clock,
                                                           StopSource* stops,
                                                           std::unique_ptr<RunRecorder> recorder) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(TransportOptions(settings)));
  KUMO_RETURN_IF_ERROR(transport->Bind(bind_address));
  LOG(INFO) << "listens at " << transport->bound_address();
  const auto& cluster = settings.experiment.cluster;
  if (settings.index > 0) {
    KUMO_RETURN_IF_ERROR(transport->Connect(ServerPeer(0), cluster.servers[0]));
    // The one that keeps what is here; the last server's is server 0, and server 1 has connected to
    // server 0 itself.
    const size_t next = static_cast<size_t>(settings.index) + 1;
    if (cluster.KeepsVersionsTwice() && next < cluster.servers.size()) {
      KUMO_RETURN_IF_ERROR(
          transport->Connect(ServerPeer(settings.index + 1), cluster.servers[next]));
    }
  }
  return std::unique_ptr<ServerService>(new ServerService(
      std::move(settings), files, clock, stops, std::move(transport), std::move(recorder)));
}

ServerService::ServerService(ServerNodeSettings settings, FileSystem* files, const Clock* clock,
                             StopSource* stops, std::unique_ptr<ZmqTransport> transport,
                             std::unique_ptr<RunRecorder> recorder)
    : settings_(settings),
      folder_(JoinPath(settings.experiment.output.directory, "checkpoints")),
      files_(files),
      clock_(clock),
      stops_(stops),
      transport_(std::move(transport)),
      recorder_(std::move(recorder)),
      node_(settings, clock->NowUs()),
      arithmetic_(settings.experiment.cluster.server_threads) {
  transport_->AddFd(stops_->fd(), [this] { OnSignals(); });
}

// A server that is asked twice to stop goes at once.
void ServerService::OnSignals() {
  for (int signal : stops_->Take()) {
    LOG(WARNING) << SignalName(signal);
    const TimeUs now = clock_->NowUs();
    if (stops_asked_ > 0 && now - stop_asked_at_ < kSameRequest) continue;
    stop_asked_at_ = now;
    if (++stops_asked_ > 1) {
      exit_ = Unavailable(std::string("ended by ") + SignalName(signal));
      continue;
    }
    if (recorder_)
      recorder_->Say("stopping after the next round, which is saved; Ctrl-C again ends at once");
    Perform(node_.RequestStop(clock_->NowUs()));
  }
}

Status ServerService::Run() {
  const auto on_message = [this](const PeerName& from, Message message) {
    Perform(node_.OnMessage(from, message, clock_->NowUs()));
  };
  while (!exit_) {
    const TimeUs now = clock_->NowUs();
    if (now >= node_.NextDeadline()) {
      node_.SetTraffic(transport_->counters().bytes_sent, transport_->counters().bytes_received);
      Perform(node_.Tick(now));
      SayWhomItWaitsFor(now);
    }
    ShowProgress(now);
    if (exit_) break;
    const TimeUs wait = std::clamp<TimeUs>(node_.NextDeadline() - now, 0, kLongestPoll);
    transport_->Poll(wait, on_message);
    RunCompletions();
  }
  for (ThreadPool* pool : {&arithmetic_, &disk_}) {
    if (Status status = pool->Shutdown(kShutdownMs); !status.ok()) LOG(WARNING) << status.message();
  }
  if (recorder_) {
    SayFarewell();
    if (Status status = recorder_->Flush(); !status.ok()) LOG(WARNING) << status.message();
  }
  return *exit_;
}

void ServerService::SayFarewell() {
  const std::string& output = settings_.experiment.output.directory;
  const wire::JobStatus status = node_.Describe(clock_->NowUs());
  if (exit_->ok()) {
    std::string accuracy = "nothing was evaluated";
    if (last_accuracy_) {
      char text[64];
      std::snprintf(text, sizeof text, "validation accuracy %.4f", *last_accuracy_);
      accuracy = text;
    }
    recorder_->RecordDone();
    recorder_->Say("done: " + accuracy + " after " + HumanDuration(status.elapsed_seconds()));
  }
  if (status.last_checkpoint() >= 0) {
    recorder_->Say("model   " + JoinPath(folder_, CheckpointName(status.last_checkpoint())));
  }
  if (const auto best = FindBest(*files_, folder_, settings_.experiment.checkpoint.best);
      best.ok()) {
    recorder_->Say("best    " + JoinPath(folder_, best->name()) + " (" +
                   DescribeEvaluation(best->evaluation()) + ")");
  }
  recorder_->Say("curves  " + output + " (tensorboard --logdir " + output + "; log.jsonl)");
  recorder_->Say("logs    " + JoinPath(output, "logs"));
}

void ServerService::Complete(Completion completion) {
  {
    MutexLock lock(mutex_);
    completions_.push_back(std::move(completion));
  }
  transport_->Wake();
}

void ServerService::RunCompletions() {
  std::vector<Completion> completions;
  {
    MutexLock lock(mutex_);
    completions.swap(completions_);
  }
  for (Completion& completion : completions) Perform(completion(clock_->NowUs()));
}

void ServerService::Perform(ServerActions actions) {
  for (ServerAction& action : actions) {
    if (auto* send = std::get_if<SendAction>(&action)) {
      // Whoever misses it asks again.
      const Status status = transport_->Send(send->to, std::move(send->message));
      if (!status.ok()) VLOG(1) << status.message();
    } else if (auto* compute = std::get_if<ComputeAction>(&action)) {
      arithmetic_.Submit([this, work = std::move(compute->work)] {
        work->Run();
        Complete([this, work](TimeUs now) { return node_.OnComputed(*work, now); });
      });
    } else if (auto* save = std::get_if<SaveAction>(&action)) {
      Save(std::move(*save));
    } else if (auto* restore = std::get_if<RestoreAction>(&action)) {
      Restore(*restore);
    } else if (auto* choose = std::get_if<ChooseCheckpointAction>(&action)) {
      Choose(*choose);
    } else if (auto* reserve = std::get_if<ReserveGenerationAction>(&action)) {
      Reserve(*reserve);
    } else if (auto* commit = std::get_if<CommitAction>(&action)) {
      Commit(std::move(commit->manifest));
    } else if (auto* keep = std::get_if<KeepEvaluationAction>(&action)) {
      KeepEvaluation(*keep);
    } else if (auto* back = std::get_if<WentBackAction>(&action)) {
      GoBack(*back);
    } else if (auto* on = std::get_if<WentOnAction>(&action)) {
      if (recorder_) recorder_->GoBack(on->version, on->samples);
    } else if (auto* started = std::get_if<StartedFromAction>(&action)) {
      Record(started->origin);
    } else if (auto* point = std::get_if<CurvePointAction>(&action)) {
      Record(*point);
    } else if (auto* epoch = std::get_if<EpochEvaluatedAction>(&action)) {
      Record(*epoch);
    } else if (auto* exit = std::get_if<ExitAction>(&action)) {
      if (!exit_) exit_ = exit->status;
    }
  }
}

void ServerService::Save(SaveAction save) {
  disk_.Submit([this, save = std::move(save)] {
    const ShardFileHeader& header = save.header;
    const Result<SavedShardFile> saved = SaveShard(*files_, folder_, header, save.snapshot);
    Result<checkpoint::File> file = checkpoint::File();
    if (saved.ok()) {
      file->set_name(ShardFileName(header.shard, header.shards, header.generation));
      file->set_bytes(saved->bytes);
      file->set_crc32c(saved->crc32c);
    } else {
      file = saved.status();
    }
    Complete([this, generation = header.generation, version = header.version,
              attempt = save.attempt,
              file](TimeUs now) { return node_.OnSaved(generation, version, attempt, file, now); });
  });
}

void ServerService::Restore(const RestoreAction& restore) {
  disk_.Submit([this, restore] {
    Result<ShardSnapshot> snapshot = [&]() -> Result<ShardSnapshot> {
      KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                            ReadManifest(*files_, folder_, restore.checkpoint));
      KUMO_ASSIGN_OR_RETURN(ShardSnapshot read,
                            ReadSnapshot(*files_, folder_, manifest, restore.wanted));
      KUMO_RETURN_IF_ERROR(Adapt(manifest, settings_.experiment, &read));
      return read;
    }();
    Complete([this, generation = restore.generation, snapshot](TimeUs now) {
      return node_.OnRestored(generation, snapshot, now);
    });
  });
}

// The disk's thread does one thing after the other, so a manifest that is being written is there.
void ServerService::Choose(const ChooseCheckpointAction& choose) {
  disk_.Submit([this, choose] {
    auto chosen = ChooseCheckpoint(*files_, settings_.experiment, choose.generation, choose.newest);
    // Rounds after it are written anew: what is not complete of them is under way again.
    committed_ = chosen.ok() && *chosen ? (*chosen)->version() : -1;
    Complete([this, generation = choose.generation, chosen = std::move(chosen)](TimeUs now) {
      return node_.OnChosen(generation, chosen, now);
    });
  });
}

void ServerService::Reserve(const ReserveGenerationAction& reserve) {
  disk_.Submit([this, reserve] {
    KeepGeneration(*files_, settings_.experiment, reserve.generation);
    Complete([this, reserve](TimeUs now) { return node_.OnReserved(reserve.generation, now); });
  });
}

void ServerService::Commit(checkpoint::Manifest manifest) {
  manifest.set_name(CheckpointName(manifest.version()));
  disk_.Submit([this, manifest = std::move(manifest)] {
    const Status status = WriteManifest(*files_, folder_, manifest);
    if (status.ok()) {
      committed_ = manifest.version();
      Prune();
    }
    Complete([this, generation = manifest.generation(), version = manifest.version(),
              status](TimeUs now) { return node_.OnCommitted(generation, version, status, now); });
  });
}

// On the disk's thread.
void ServerService::Prune() {
  if (committed_ < 0) return;
  const auto& options = settings_.experiment.checkpoint;
  const auto pruned = PruneCheckpoints(*files_, folder_, {options.keep, options.best}, committed_);
  if (!pruned.ok()) LOG(WARNING) << pruned.status().message();
}

void ServerService::KeepEvaluation(const KeepEvaluationAction& keep) {
  disk_.Submit([this, keep] {
    const Status kept =
        WriteEvaluation(*files_, folder_, keep.version, keep.since, keep.evaluation);
    if (!kept.ok()) LOG(WARNING) << kept.message();
    if (settings_.experiment.checkpoint.best != "none") Prune();  // another one may be the best now
  });
}

void ServerService::GoBack(const WentBackAction& back) {
  if (!recorder_) return;
  recorder_->GoBack(back.version, back.samples);
  if (back.version < 0) return;
  recorder_->Say(back.why + ": goes on from round " + std::to_string(back.version));
}

void ServerService::Record(const checkpoint::Origin& origin) {
  for (const std::string& line : LinesOf(origin)) {
    LOG(INFO) << line;
    if (recorder_) recorder_->Say(line);
  }
  if (!recorder_) return;
  recorder_->Record(StartedRun{origin.checkpoint(),
                               {origin.taken().begin(), origin.taken().end()},
                               {origin.left().begin(), origin.left().end()}});
}

void ServerService::Record(const CurvePointAction& action) {
  if (!recorder_) return;
  CurvePoint point;
  point.round = action.version;
  point.samples = action.samples;
  point.epoch = action.epoch + 1;
  point.loss = Mean(action.train.loss_sum(), action.train.samples());
  point.accuracy = Mean(static_cast<double>(action.train.correct()), action.train.samples());
  point.learning_rate = action.learning_rate;
  point.elapsed_seconds = node_.ElapsedSeconds(clock_->NowUs());
  recorder_->Record(point);
}

void ServerService::Record(const EpochEvaluatedAction& epoch) {
  if (!recorder_) return;
  EpochResult result;
  result.epoch = epoch.epoch + 1;
  result.round = epoch.version;
  result.samples = epoch.samples;
  result.loss = Mean(epoch.train.loss_sum(), epoch.train.samples());
  result.accuracy = Mean(static_cast<double>(epoch.train.correct()), epoch.train.samples());
  if (epoch.validation.samples() > 0) {
    result.validation_loss = Mean(epoch.validation.loss_sum(), epoch.validation.samples());
    result.validation_accuracy =
        Mean(static_cast<double>(epoch.validation.correct()), epoch.validation.samples());
    last_accuracy_ = *result.validation_accuracy;
  }
  result.elapsed_seconds = node_.ElapsedSeconds(clock_->NowUs());
  recorder_->Record(result);
}

void ServerService::SayWhomItWaitsFor(TimeUs now) {
  const auto waits = wait_notice_.Update(node_.WaitsForProcesses(now), now);
  if (!waits) return;
  // A person sees what server 0 says, and the others' warnings.
  if (recorder_) {
    recorder_->Say(*waits);
    LOG(INFO) << *waits;
  } else {
    LOG(WARNING) << *waits;
  }
}

void ServerService::ShowProgress(TimeUs now) {
  if (!recorder_ || now < next_progress_) return;
  next_progress_ = now + static_cast<TimeUs>(settings_.experiment.output.interval_s * 1e6);
  const wire::JobStatus status = node_.Describe(now);
  if (status.phase() == "training" && status.has_rounds()) recorder_->Record(ProgressOf(status));
}

}  // namespace kumo
