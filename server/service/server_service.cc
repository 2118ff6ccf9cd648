#include "server/service/server_service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/base/process/signals.h"
#include "common/checkpoint/checkpoint.h"
#include "common/trace/trace_agent.h"
#include "common/transport/key_files.h"
#include "server/protocol/chunk_work.h"
#include "server/service/trace_relay.h"

namespace kumo {
namespace {

constexpr TimeUs kLongestPoll = 100 * kMillisecond;
// Wait for threads at the end, longer than a slow disk takes: they must end before the objects that
// they use.
constexpr int64_t kShutdownMs = 60'000;

}  // namespace

Result<ZmqTransportOptions> TransportOptions(const ServerNodeSettings& settings) {
  ZmqTransportOptions options;
  options.name = ServerPeer(settings.index);
  options.framing.job = settings.identity.JobId();
  options.framing.max_payload_bytes = settings.experiment.cluster.chunk_kib * 1024 + 4096;
  options.silent_holder_us = FromSeconds(settings.experiment.cluster.suspect_after_s);
  // The coordinator decides which of two processes is the worker of a name.
  options.one_worker_per_name = settings.index == 0;
  const auto& cluster = settings.experiment.cluster;
  KUMO_ASSIGN_OR_RETURN(options.keys, ReadKeys(cluster.keys, ServerKey(settings.index)));
  options.insecure = cluster.insecure;
  return options;
}

Result<std::unique_ptr<ServerService>> ServerService::Make(ServerNodeSettings settings,
                                                           const std::string& bind_address,
                                                           FileSystem* files, const Clock* clock,
                                                           StopSource* stops,
                                                           std::unique_ptr<RunRecorder> recorder,
                                                           ProcessView* view) {
  KUMO_ASSIGN_OR_RETURN(ZmqTransportOptions options, TransportOptions(settings));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  KUMO_RETURN_IF_ERROR(transport->Bind(bind_address));
  LOG(INFO) << "listens at " << transport->bound_address();
  const auto& cluster = settings.experiment.cluster;
  if (settings.index > 0) {
    KUMO_RETURN_IF_ERROR(transport->Connect(ServerPeer(0), cluster.servers[0]));
    // The next server keeps this one's versions. Next to the last server is server 0, to which
    // every server is connected already.
    const size_t next = static_cast<size_t>(settings.index) + 1;
    if (cluster.KeepsVersionsTwice() && next < cluster.servers.size()) {
      KUMO_RETURN_IF_ERROR(
          transport->Connect(ServerPeer(settings.index + 1), cluster.servers[next]));
    }
  }
  return std::unique_ptr<ServerService>(new ServerService(
      std::move(settings), files, clock, stops, std::move(transport), std::move(recorder), view));
}

ServerService::ServerService(ServerNodeSettings settings, FileSystem* files, const Clock* clock,
                             StopSource* stops, std::unique_ptr<ZmqTransport> transport,
                             std::unique_ptr<RunRecorder> recorder, ProcessView* view)
    : clock_(clock),
      folder_(settings.folder),
      run_(settings.run),
      fails_if_diverged_(settings.experiment.job.fail_if_diverged),
      stops_(stops),
      transport_(std::move(transport)),
      completions_(transport_.get(), clock),
      recorder_(std::move(recorder), settings.experiment.output, settings.restored),
      monitor_(view),
      node_(settings, clock->NowUs()),
      tracer_(clock),
      disk_(files, settings.experiment),
      arithmetic_(settings.experiment.cluster.server_threads) {
  transport_->AddFd(stops_->fd(), [this] { OnSignals(); });
  transport_->OnPeerConnection([this](const PeerName& peer, bool connected) {
    node_.OnPeerConnection(peer, connected, clock_->NowUs());
  });
  const auto send = [this](const PeerName& to, Message message) {
    return transport_->Send(to, std::move(message));
  };
  if (settings.index == 0) {
    tracing_ = std::make_unique<TraceRelay>(&tracer_, send);
  } else {
    tracing_ = std::make_unique<TraceAgent>(
        &tracer_, [send](Message report) { return send(ServerPeer(0), std::move(report)); });
  }
}

// The second request to stop ends the server at once.
void ServerService::OnSignals() {
  for (int signal : stops_->Take()) {
    LOG(WARNING) << SignalName(signal);
    const TimeUs now = clock_->NowUs();
    const int request = stop_requests_.OnSignal(now);
    if (request == 0) continue;
    if (request > 1) {
      exit_ = Unavailable(std::string("ended by ") + SignalName(signal));
      continue;
    }
    // Before a worker has brought the spec, no round is under way.
    if (node_.Describe(now).has_rounds()) {
      recorder_.Say("stopping after the next round, which is saved; Ctrl-C again ends at once");
    }
    Perform(node_.RequestStop(clock_->NowUs()));
  }
}

Status ServerService::Run() {
  const auto on_message = [this](const PeerName& from, Message message) {
    OnMessage(from, std::move(message));
  };
  GapNotice gap_notice(clock_);
  while (!exit_) {
    const TimeUs now = clock_->NowUs();
    if (const auto gap = gap_notice.Next()) LOG(WARNING) << *gap;
    if (now >= node_.NextDeadline()) {
      node_.SetTraffic(transport_->counters().bytes_sent, transport_->counters().bytes_received);
      Perform(node_.Tick(now));
      const auto waits = wait_notice_.Update(node_.WaitsForProcesses(now), now);
      if (waits) recorder_.SayWaitsFor(*waits);
    }
    if (auto failure = recorder_.NewFailure()) {
      Perform(node_.OnDiskAnswer(node_.generation(), CurvesHealth{*std::move(failure)}, now));
    }
    if (recorder_.ProgressIsDue(now)) recorder_.ShowProgress(node_.Describe(now), now);
    if (monitor_.OnLoop(now)) {
      monitor_.Publish(StatusOfJob(now), transport_->counters(), transport_->waiting_bytes(), now);
    }
    if (exit_) break;
    tracing_->Tick(now);
    const TimeUs next = std::min(node_.NextDeadline(), tracing_->NextDeadline());
    const TimeUs wait = std::clamp<TimeUs>(next - now, 0, kLongestPoll);
    transport_->Poll(wait, on_message);
    completions_.Run([this](ServerActions actions) { Perform(std::move(actions)); });
  }
  for (ThreadPool* pool : {&arithmetic_, &disk_thread_}) {
    Status ended = pool->Shutdown(kShutdownMs);
    if (!ended.ok() && exit_->ok()) exit_ = ended;
    threads_ended_ = threads_ended_ && ended.ok();
    LOG_IF(ERROR, !ended.ok()) << ended.message() << "; does the disk answer?";
  }
  if (recorder_.records() && threads_ended_) {
    if (exit_->ok()) exit_ = disk_.CheckResults(folder_);
    const wire::JobStatus status = node_.Describe(clock_->NowUs());
    if (status.last_checkpoint() >= 0) LeaveModel(status.last_checkpoint());
    recorder_.SayEnd(exit_->ok(), status, disk_, model_);
    if (exit_->ok() && fails_if_diverged_ && !status.trouble().empty()) {
      exit_ = FailedPrecondition(status.trouble());  // no checkpoint to go back to
    }
    monitor_.PublishEnd(status, transport_->counters(), *exit_, clock_->NowUs());
  }
  return *exit_;
}

// The model of a job that is not done stays where the next start finds it. A copy may take minutes,
// in which this process is well.
void ServerService::LeaveModel(int64_t version) {
  model_ = JoinPath(disk_.folder(), CheckpointName(version));
  if (!exit_->ok()) return;
  constexpr std::chrono::seconds kTurn(1);
  std::future<Result<std::string>> copy =
      std::async(std::launch::async | std::launch::deferred,  // without a thread: below
                 [&] { return disk_.LeaveModel(version); });
  while (copy.wait_for(kTurn) == std::future_status::timeout) monitor_.OnLoop(clock_->NowUs());
  const Result<std::string> left = copy.get();
  if (left.ok()) {
    model_ = *left;
  } else {
    exit_ = left.status();
  }
}

void ServerService::OnMessage(const PeerName& from, Message message) {
  const TimeUs now = clock_->NowUs();
  if (tracing_->Takes(from, &message, now)) return;
  Perform(node_.OnMessage(from, message, now));
}

std::optional<wire::JobStatus> ServerService::StatusOfJob(TimeUs now) const {
  if (!recorder_.records()) return std::nullopt;
  return node_.Describe(now);
}

void ServerService::Perform(ServerActions actions) {
  for (ServerAction& action : actions) {
    monitor_.See(action, clock_->NowUs());
    std::visit([this](auto& one) { Do(std::move(one)); }, action);
  }
}

void ServerService::Do(SendAction send) {
  // A lost message is repeated by its sender or asked for again by its receiver.
  const Status status = transport_->Send(send.to, std::move(send.message));
  if (status.ok()) return;
  VLOG(1) << status.message();
  // A payload beyond the limit would be repeated for ever.
  if (status.code() == StatusCode::kInvalidArgument && !exit_) {
    exit_ = FailedPrecondition(status.message());
  }
}

void ServerService::Do(JoinAction join) {
  OnDisk([this, hello = std::move(join.hello)]() mutable {
    hello.message.header.mutable_hello()->set_folder(disk_.FolderToken());
    completions_.Add([hello = std::move(hello)](TimeUs) { return ServerActions{hello}; });
  });
}

void ServerService::Do(ComputeAction compute) {
  arithmetic_.Submit([this, work = std::move(compute.work)] {
    const trace::Kind kind = work->applies() ? trace::APPLY : trace::AGGREGATE;
    {
      const TraceScope scope(&tracer_, kind, {.round = work->round, .chunk = work->chunk});
      work->Run();
    }
    completions_.Add([this, work](TimeUs now) { return node_.OnComputed(*work, now); });
  });
}

void ServerService::Do(SaveAction save) {
  OnDisk([this, asked = clock_->NowUs(), save = std::move(save)] {
    const ShardFileHeader& header = save.header;
    const TraceScope scope(&tracer_, trace::CHECKPOINT, {.round = header.version});
    completions_.Add([this, generation = header.generation, version = header.version,
                      attempt = save.attempt, asked, file = disk_.Save(save)](TimeUs now) {
      monitor_.OnSaved(file, now - asked);
      return node_.OnSaved(generation, version, attempt, file, now);
    });
  });
}

void ServerService::Do(const RestoreAction& restore) {
  OnDisk([this, restore] {
    const TraceScope scope(&tracer_, trace::RESTORE, {});
    completions_.Add([this, generation = restore.generation, snapshot = disk_.Restore(restore)](
                         TimeUs now) { return node_.OnRestored(generation, snapshot, now); });
  });
}

void ServerService::Do(const ChooseCheckpointAction& choose) {
  OnDisk([this, choose] {
    completions_.Add(
        [this, generation = choose.generation, chosen = disk_.Choose(choose)](TimeUs now) {
          return node_.OnDiskAnswer(generation, CheckpointChosen{chosen}, now);
        });
  });
}

void ServerService::Do(const ReserveGenerationAction& reserve) {
  OnDisk([this, reserve] {
    disk_.Reserve(reserve);
    completions_.Add([this, reserve](TimeUs now) {
      return node_.OnDiskAnswer(reserve.generation, GenerationReserved(), now);
    });
  });
}

void ServerService::Do(CommitAction commit) {
  OnDisk([this, manifest = std::move(commit.manifest)] {
    completions_.Add([this, generation = manifest.generation(), version = manifest.version(),
                      status = disk_.Commit(manifest)](TimeUs now) {
      monitor_.OnCommitted(version, status, now);
      return node_.OnDiskAnswer(generation, CheckpointCommitted{version, status}, now);
    });
  });
}

void ServerService::Do(const KeepEvaluationAction& keep) {
  OnDisk([this, keep] {
    disk_.KeepEvaluation(keep);
    completions_.Add(
        [this, keep](TimeUs now) { return node_.OnDiskAnswer(keep.since, EvaluationKept(), now); });
  });
}

void ServerService::Do(AnswerFromDiskAction answer) {
  OnDisk([this, send = std::move(answer.reply)]() mutable {
    disk_.Answer(&send.message);
    completions_.Add([send = std::move(send)](TimeUs) { return ServerActions{send}; });
  });
}

void ServerService::Do(CheckFilesAction check) {
  OnDisk([this, check = std::move(check)] {
    completions_.Add([this, answer = FilesChecked{check.fetch, disk_.Check(check)}](TimeUs now) {
      return node_.OnFilesAnswer(answer, now);
    });
  });
}

void ServerService::Do(WritePieceAction write) {
  OnDisk([this, write = std::move(write)] {
    completions_.Add([this, answer = PieceWritten{write.fetch, write.offset, disk_.Write(write)}](
                         TimeUs now) { return node_.OnFilesAnswer(answer, now); });
  });
}

void ServerService::Do(KeepManifestAction keep) {
  OnDisk([this, keep = std::move(keep)] { disk_.KeepManifest(keep); });
}

void ServerService::Do(const EnterGenerationAction& enter) {
  OnDisk([this, enter] { disk_.Enter(enter); });
}

void ServerService::Do(const DropCheckpointAction& drop) {
  OnDisk([this, drop] { disk_.Drop(drop); });
}

void ServerService::Do(const BeginRunAction& begin) {
  OnDisk([this, begin] {
    completions_.Add([this, begin, aside = disk_.BeginRun(run_)](TimeUs now) {
      const Status begun = aside.ok() ? recorder_.Begin(*aside, begin.metrics) : aside.status();
      return node_.OnDiskAnswer(begin.generation, RunBegun{begun}, now);
    });
  });
}

void ServerService::Do(const CurvePointAction& point) {
  recorder_.Record(point, node_.Describe(clock_->NowUs()).elapsed_seconds());
}

void ServerService::Do(const EpochEvaluatedAction& epoch) {
  recorder_.Record(epoch, node_.Describe(clock_->NowUs()).elapsed_seconds());
}

void ServerService::Do(const EvaluationPictureAction& picture) { recorder_.Record(picture); }

void ServerService::Do(const ExitAction& exit) {
  if (!exit_) exit_ = exit.status;
}

}  // namespace kumo
