#include "worker/worker_service.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/process/signals.h"
#include "common/transport/key_files.h"

namespace kumo {
namespace {

// The longest wait of the loop, and so the largest delay of a completion.
constexpr TimeUs kLongestPoll = 100 * kMillisecond;
// Waits of the compute thread shorter than this are not traced.
constexpr TimeUs kShortestWait = 50;
// Time to wait for the compute thread at the end, longer than any minibatch: it must end before the
// data it works on.
constexpr int64_t kComputeShutdownMs = 60'000;

}  // namespace

LogSettings LogOfWorker(const std::string& program, const Experiment& experiment,
                        const std::string& name) {
  LogSettings log;
  log.program = program;
  log.directory = JoinPath(experiment.output.directory, "logs");
  log.role = "worker";
  // The worker "worker-3" logs to worker-3.<host>.log, not to worker-worker-3.<host>.log.
  log.rank = name.starts_with("worker-") ? name.substr(7) : name;
  return log;
}

Result<std::unique_ptr<WorkerService>> WorkerService::Make(const SessionSettings& settings,
                                                           const Clock* clock,
                                                           TrainingEngine* engine,
                                                           StopSource* stops, ProcessView* view) {
  KUMO_ASSIGN_OR_RETURN(Session session, Session::Make(settings, clock->NowUs()));
  ZmqTransportOptions options;
  options.name = session.peer_name();
  options.framing.job = settings.identity.JobId();
  options.framing.max_payload_bytes = settings.experiment.cluster.chunk_kib * 1024 + 4096;
  KUMO_ASSIGN_OR_RETURN(options.keys,
                        ReadWorkerKeys(settings.experiment.cluster.keys, settings.name));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> transport,
                        ZmqTransport::Make(std::move(options)));
  const auto& servers = settings.experiment.cluster.servers;
  for (size_t i = 0; i < servers.size(); ++i) {
    KUMO_RETURN_IF_ERROR(transport->Connect(ServerPeer(static_cast<int>(i)), servers[i]));
  }
  std::unique_ptr<WorkerService> service(new WorkerService(std::move(session), clock, engine, stops,
                                                           std::move(transport),
                                                           WorkerMonitor(view, settings.name)));
  KUMO_RETURN_IF_ERROR(engine->Attach(&service->session_.shape()));
  return service;
}

WorkerService::WorkerService(Session session, const Clock* clock, TrainingEngine* engine,
                             StopSource* stops, std::unique_ptr<ZmqTransport> transport,
                             WorkerMonitor monitor)
    : session_(std::move(session)),
      clock_(clock),
      engine_(engine),
      stops_(stops),
      transport_(std::move(transport)),
      completions_(transport_.get(), clock),
      monitor_(std::move(monitor)),
      tracer_(clock),
      trace_agent_(
          &tracer_,
          [this](Message report) { return transport_->Send(ServerPeer(0), std::move(report)); }),
      requests_(&tracer_),
      coding_(engine->codes_beside_steps() ? 1 : 0) {
  transport_->AddFd(stops_->fd(), [this] {
    for (int signal : stops_->Take()) {
      LOG(WARNING) << (signal == 0 ? "its program's request" : SignalName(signal))
                   << ": leaves the job";
      Perform(session_.Leave(clock_->NowUs()));
    }
  });
}

Status WorkerService::Run() {
  const auto on_message = [this](const PeerName& from, Message message) {
    for (int i = 0; i < session_.shape().map.servers(); ++i) {
      if (from == ServerPeer(i)) return OnMessage(i, std::move(message));
    }
  };
  transport_->OnConnected([this](const PeerName& peer) {
    for (int i = 0; i < session_.shape().map.servers(); ++i) {
      if (peer == ServerPeer(i)) Perform(session_.OnConnected(i, clock_->NowUs()));
    }
  });
  GapNotice gap_notice(clock_);
  while (!left_) {
    const TimeUs now = clock_->NowUs();
    if (const auto gap = gap_notice.Next()) LOG(WARNING) << *gap;
    if (now >= session_.NextDeadline()) {
      const TransportCounters& counters = transport_->counters();
      Perform(session_.Tick(now, {counters.bytes_sent, counters.bytes_received}));
      const auto waits = wait_notice_.Update(session_.WaitsForProcesses(), now);
      LOG_IF(WARNING, waits.has_value()) << waits.value_or("");
    }
    if (left_) break;
    if (monitor_.OnLoop(now)) {
      monitor_.Publish(session_.WaitsForProcesses(), transport_->counters(),
                       transport_->waiting_bytes(), now);
    }
    trace_agent_.Tick(now);
    const TimeUs next = std::min(session_.NextDeadline(), trace_agent_.NextDeadline());
    const TimeUs wait = std::clamp<TimeUs>(next - now, 0, kLongestPoll);
    transport_->Poll(wait, on_message);
    completions_.Run([this](WorkerActions actions) { Perform(std::move(actions)); });
  }
  // The result of a block in progress is no longer needed.
  engine_->Cancel();
  for (ThreadPool* pool : {&compute_, &coding_}) {
    if (Status status = pool->Shutdown(kComputeShutdownMs); !status.ok()) {
      LOG(WARNING) << status.message();
    }
  }
  return result_;
}

void WorkerService::OnMessage(int server, Message message) {
  const TimeUs now = clock_->NowUs();
  if (trace_agent_.Takes(ServerPeer(server), &message, now)) return;
  requests_.OnArrived(server, message.header, now);
  Perform(session_.OnMessage(server, message, now));
}

void WorkerService::Compute(std::function<void()> work) {
  compute_.Submit([this, work = std::move(work)] {
    const TimeUs now = idle_since_ > 0 ? tracer_.NowUs() : 0;
    if (now - idle_since_ >= kShortestWait) tracer_.Add(trace::WAIT, idle_since_, now, {});
    WaitForCoding();
    Try(work);
    idle_since_ = tracer_.on() ? tracer_.NowUs() : 0;
  });
}

void WorkerService::Code(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    ++to_code_;
  }
  coding_.Submit([this, work = std::move(work)] {
    Try(work);
    MutexLock lock(mutex_);
    if (--to_code_ == 0) coded_.NotifyAll();
  });
}

void WorkerService::Try(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    completions_.Add(
        [this, status = CurrentException()](TimeUs now) { return session_.OnFailed(status, now); });
  }
}

void WorkerService::WaitForCoding() {
  MutexLock lock(mutex_);
  while (to_code_ > 0) coded_.Wait(mutex_);
}

void WorkerService::Perform(WorkerActions actions) {
  for (WorkerAction& action : actions) {
    std::visit([this](auto& one) { Do(std::move(one)); }, action);
  }
}

void WorkerService::Do(SendToServerAction send) {
  requests_.OnSent(send.server, send.message.header, clock_->NowUs());
  monitor_.See(send.message.header);
  // A message that cannot be sent now is repeated by the session's timers.
  const Status status = transport_->Send(ServerPeer(send.server), std::move(send.message));
  if (status.ok()) return;
  VLOG(1) << status.message();
  // A payload beyond the limit would be repeated for ever.
  if (status.code() == StatusCode::kInvalidArgument) {
    completions_.Add([this, why = FailedPrecondition(status.message())](TimeUs now) {
      return session_.OnFailed(why, now);
    });
  }
}

void WorkerService::Do(const InitialiseAction&) {
  Compute([this] {
    auto weights = std::make_shared<Result<InitialWeights>>(engine_->MakeInitialWeights());
    completions_.Add([this, weights](TimeUs now) {
      if (!weights->ok()) return session_.OnFailed(weights->status(), now);
      return session_.OnInitialised(std::move(*weights).value(), now);
    });
  });
}

// Beside steps ahead, chunks of the next version are installed at once. All chunks of earlier
// versions are: with such steps, no version is pulled before the last block of the round before.
void WorkerService::Do(InstallAction install) {
  const bool beside = keeps_ahead_ && coding_.threads() > 0 && install.vector == wire::START;
  auto work = [this, install = std::move(install)] {
    const TraceScope scope(&tracer_, trace::INSTALL, {.chunk = install.chunk});
    engine_->Install(install);
  };
  beside ? Code(std::move(work)) : Compute(std::move(work));
}

void WorkerService::Do(AdoptAction adopt) {
  Compute([this, adopt = std::move(adopt)] { engine_->Adopt(adopt); });
}

void WorkerService::Do(const TrainAction& train) {
  Compute([this, train] {
    const auto on_coded = [this](std::vector<CodedChunk> chunks) {
      auto coded = std::make_shared<std::vector<CodedChunk>>(std::move(chunks));
      completions_.Add(
          [this, coded](TimeUs now) { return session_.OnCoded(std::move(*coded), now); });
    };
    const TimeUs begin = tracer_.NowUs();
    auto block = std::make_shared<Result<TrainedBlock>>(engine_->Train(train, on_coded));
    const TraceSubject subject{.round = train.round.round, .partition = train.partition};
    if (tracer_.on()) tracer_.Add(trace::COMPUTE, begin, tracer_.NowUs(), subject);
    const bool trained = block->ok();
    Code([this, train, block, subject] {
      if (block->ok()) {
        const TraceScope scope(&tracer_, trace::ENCODE, subject);
        if (Status status = engine_->Code(train, &block->value()); !status.ok()) *block = status;
      }
      completions_.Add([this, block](TimeUs now) {
        if (!block->ok()) return session_.OnFailed(block->status(), now);
        return session_.OnTrained(std::move(*block).value(), now);
      });
    });
    if (trained) StepAhead(train);
  });
}

void WorkerService::StepAhead(const TrainAction& train) {
  const JobShape& shape = session_.shape();
  if (!shape.TrainsAhead(train.round.round, train.partition)) return;
  const RoundPlan round = shape.plan.Round(train.round.round + 1);
  const TraceScope scope(&tracer_, trace::COMPUTE,
                         {.round = round.round, .partition = train.partition});
  ahead_ = engine_->StepAhead(round, train.partition);
  // The session asks for no steps of a partition that it has lost meanwhile, but a failure counts.
  if (const Status& status = ahead_->status();
      !ahead_->ok() && status.code() != StatusCode::kAborted) {
    completions_.Add([this, status](TimeUs now) { return session_.OnFailed(status, now); });
  }
}

// The steps have followed the block already: the session asks for them if the partition is still
// leased.
void WorkerService::Do(const TrainAheadAction& train) {
  keeps_ahead_ = true;
  Compute([this, train] {
    if (!ahead_) return;  // they failed, which the session knows
    auto ahead = std::make_shared<Result<TrainedAhead>>(*std::exchange(ahead_, std::nullopt));
    // In turn with the installations, since both may be about the base weights.
    Code([this, train, ahead] {
      if (ahead->ok()) {
        const Status status = engine_->KeepAhead(train, &ahead->value());
        if (!status.ok()) *ahead = status;
      }
      completions_.Add([this, ahead](TimeUs now) {
        keeps_ahead_ = false;
        if (!ahead->ok()) return session_.OnFailed(ahead->status(), now);
        return session_.OnTrainedAhead(std::move(*ahead).value(), now);
      });
    });
  });
}

void WorkerService::Do(const EvaluateAction& evaluate) {
  Compute([this, evaluate] {
    const TraceScope scope(&tracer_, trace::EVALUATE, {.partition = evaluate.partition});
    auto evaluation = std::make_shared<Result<Evaluation>>(engine_->Evaluate(evaluate));
    completions_.Add([this, evaluation](TimeUs now) {
      if (!evaluation->ok()) return session_.OnFailed(evaluation->status(), now);
      return session_.OnEvaluated(**evaluation, now);
    });
  });
}

void WorkerService::Do(const DropAction& drop) {
  Compute([this, partition = drop.partition] { engine_->Drop(partition); });
}

void WorkerService::Do(const LeaveAction& leave) {
  left_ = true;
  result_ = leave.status;
  handed_over_ = leave.handed_over;
  job_ended_ = leave.job_ended;
}

}  // namespace kumo
