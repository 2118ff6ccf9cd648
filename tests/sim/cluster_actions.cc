// What the simulated processes' machines ask for: what a driver carries out, in virtual time.
#include <algorithm>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/settings/experiment_text.h"
#include "tests/sim/cluster.h"
#include "tests/sim/processes.h"

namespace kumo::sim {
namespace {

constexpr TimeUs kComputeChunk = 50;
constexpr TimeUs kSaveFile = 20 * kMillisecond;
constexpr TimeUs kWriteManifest = kMillisecond;
constexpr TimeUs kReadPiece = kMillisecond;
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

// --- Of servers.

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, JoinAction join) {
  // A disk of its own has no token of server 0's.
  join.hello.message.header.mutable_hello()->set_folder(HasPrivateDisks() ? 0 : disk_->token);
  SendFromServer(server, join.hello.to, std::move(join.hello.message));
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const ComputeAction& compute) {
  const std::shared_ptr<ChunkWork> work = compute.work;
  Mutate(work.get());
  invariants_->OnWork(server->incarnation, *work);
  At(now_ + kComputeChunk + RandomTime(200), [this, server, work] {
    work->Run();
    In(server,
       [this, server, work] { Perform(server, server->node->OnComputed(*work, Now(*server))); });
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
      if (server->disk) file = server->disk->Save(*saved);
    }
    In(server, [this, server, header, attempt = saved->attempt, file] {
      Perform(server, server->node->OnSaved(header.generation, header.version, attempt, file,
                                            Now(*server)));
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
  const Status committed = server->disk ? server->disk->Commit(manifest) : OkStatus();
  if (committed.ok()) {
    disk_->manifests[version] = manifest;
    // Checkpoints of later versions are of a past that the job went back from.
    disk_->manifests.erase(disk_->manifests.upper_bound(version), disk_->manifests.end());
  }
  At(now_ + kWriteManifest, [this, server, generation = manifest.generation(), version, committed] {
    In(server, [this, server, generation, version, committed] {
      result_.done = now_;
      Perform(server, server->node->OnDiskAnswer(
                          generation, CheckpointCommitted{version, committed}, Now(*server)));
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
  if (server->disk) {
    const Result<ShardSnapshot> read = server->disk->Restore(restore);
    At(now_ + kMillisecond, [this, server, generation = restore.generation, read] {
      In(server, [this, server, generation, read] {
        Perform(server, server->node->OnRestored(generation, read, Now(*server)));
      });
    });
    return;
  }
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
      Perform(server, server->node->OnRestored(generation, all, Now(*server)));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server,
                 const ChooseCheckpointAction& choose) {
  if (server->disk) {
    const auto chosen = server->disk->Choose(choose);
    At(now_ + 2 * kMillisecond, [this, server, generation = choose.generation, chosen] {
      In(server, [this, server, generation, chosen] {
        Perform(server,
                server->node->OnDiskAnswer(generation, CheckpointChosen{chosen}, Now(*server)));
      });
    });
    return;
  }
  disk_->generation = std::max(disk_->generation, choose.generation);
  std::optional<checkpoint::Manifest> manifest;
  for (const auto& [version, candidate] : disk_->manifests) {
    if (version <= choose.newest) manifest = Continued(candidate);
  }
  At(now_ + 2 * kMillisecond, [this, server, generation = choose.generation, manifest] {
    In(server, [this, server, generation, manifest] {
      Perform(server,
              server->node->OnDiskAnswer(generation, CheckpointChosen{manifest}, Now(*server)));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server,
                 const ReserveGenerationAction& reserve) {
  disk_->generation = std::max(disk_->generation, reserve.generation);
  if (server->disk) server->disk->Reserve(reserve);
  At(now_ + kMillisecond, [this, server, generation = reserve.generation] {
    In(server, [this, server, generation] {
      Perform(server, server->node->OnDiskAnswer(generation, GenerationReserved(), Now(*server)));
    });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, SendAction send) {
  SendFromServer(server, send.to, std::move(send.message));
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const KeepEvaluationAction& keep) {
  At(now_ + kWriteManifest, [this, server, keep] {
    if (!server->alive) return;
    if (server->disk) server->disk->KeepEvaluation(keep);
    const auto found = disk_->manifests.find(keep.version);
    if (found != disk_->manifests.end() && found->second.generation() >= keep.since) {
      *found->second.mutable_evaluation() = keep.evaluation;
    }
    In(server, [this, server, keep] {
      Perform(server, server->node->OnDiskAnswer(keep.since, EvaluationKept(), Now(*server)));
    });
  });
}

// --- Of servers with disks of their own.

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const AnswerFromDiskAction& answer) {
  At(now_ + kReadPiece, [this, server, reply = answer.reply] {
    if (!server->alive) return;
    SendAction send = reply;
    server->disk->Answer(&send.message);
    In(server, [this, server, send] { Do(server, send); });
  });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const CheckFilesAction& check) {
  const FilesChecked answer{check.fetch, server->disk->Check(check)};
  At(now_ + kReadPiece,
     [this, server, answer] { In(server, [this, server, answer] { ToMachine(server, answer); }); });
}

// What server 0 gathers for a checkpoint may not fit on its disk.
void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const WritePieceAction& write) {
  const bool gathers = server->index == 0 && server->node;
  const bool fails = gathers && rng_.NextUniform() < settings_.faults.disk;
  const PieceWritten answer{
      write.fetch, write.offset,
      fails ? ResourceExhausted("the disk is full") : server->disk->Write(write)};
  At(now_ + kReadPiece,
     [this, server, answer] { In(server, [this, server, answer] { ToMachine(server, answer); }); });
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const KeepManifestAction& keep) {
  server->disk->KeepManifest(keep);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const EnterGenerationAction& enter) {
  server->disk->Enter(enter);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const DropCheckpointAction& drop) {
  if (server->disk) server->disk->Drop(drop);
}

void Cluster::Do(const std::shared_ptr<ServerProcess>& server, const BeginRunAction& begin) {
  const Status begun = server->disk ? server->disk->BeginRun("").status() : OkStatus();
  At(now_ + kWriteManifest, [this, server, generation = begin.generation, begun] {
    In(server, [this, server, generation, begun] {
      Perform(server, server->node->OnDiskAnswer(generation, RunBegun{begun}, now_));
    });
  });
}

void Cluster::ToMachine(const std::shared_ptr<ServerProcess>& server, const FilesAnswer& answer) {
  if (server->node) {
    Perform(server, server->node->OnFilesAnswer(answer, Now(*server)));
  } else {
    Perform(server, server->survey->OnAnswer(answer, Now(*server)));
    GoOnFromSurvey(server);
  }
}

void Cluster::ToMachine(const std::shared_ptr<ServerProcess>& to, const PeerName& from,
                        const Message& message) {
  if (to->node) {
    Perform(to, to->node->OnMessage(from, message, Now(*to)));
  } else {
    Perform(to, to->survey->OnMessage(from, message, Now(*to)));
    GoOnFromSurvey(to);
  }
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
    closed.sums.samples *= 2;
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
    RestartServerLater(index);
  }
}

void Cluster::Perform(const std::shared_ptr<ServerProcess>& server, ServerActions actions) {
  for (ServerAction& action : actions) {
    std::visit([&](auto& one) { Do(server, std::move(one)); }, action);
  }
}

// --- Of workers.

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
    return process.session->OnInitialised({process.trainer->InitialWeights(), {}}, Now(process));
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, InstallAction install) {
  Mutate(&install);
  worker->trainer->Install(install);
  const bool twice = settings_.mutation == Mutation::kDifferenceTwice;
  if (twice && install.adds && !install.relay) worker->trainer->Install(install);
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
  After(time / 2, worker, [this, worker, &session, block, train] {
    std::vector<CodedChunk> early;
    for (const Chunk& chunk : session.shape().map.chunks()) {
      if (chunk.index == 0 || block->contributions[chunk.index].empty()) continue;
      if ((chunk.index + train.round.round + train.partition) % 3 == 0) continue;
      early.push_back({chunk.index, block->contributions[chunk.index], block->weight});
    }
    return session.OnCoded(std::move(early), Now(*worker));
  });
  After(time, worker, [this, worker, &session, block, time] {
    ++result_.blocks_trained;
    block->times.compute_ms = static_cast<double>(time) * 1e-3;
    return session.OnTrained(std::move(*block), Now(*worker));
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const TrainAheadAction& train) {
  Session& session = *worker->session;
  const auto ahead = std::make_shared<TrainedAhead>(worker->trainer->TrainAhead(train));
  After(kTrainBlock / 2 + RandomTime(2 * kTrainBlock), worker, [this, worker, &session, ahead] {
    return session.OnTrainedAhead(std::move(*ahead), Now(*worker));
  });
}

void Cluster::Do(const std::shared_ptr<WorkerProcess>& worker, const EvaluateAction& evaluate) {
  WorkerProcess& process = *worker;
  After(kEvaluateSlice, worker, [this, &process, evaluate] {
    return process.session->OnEvaluated({.metrics = process.trainer->Evaluate(evaluate)},
                                        Now(process));
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

}  // namespace kumo::sim
