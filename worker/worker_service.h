// A worker process: the session's driver over ZeroMQ, with one thread for the arithmetic.
//
// The calling thread owns the session and the transport; the compute thread owns the trainer. They
// meet in two queues: what the session wants computed, in order, and what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/process/stop_source.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/telemetry/wait_notice.h"
#include "common/trace/trace_agent.h"
#include "common/trace/tracer.h"
#include "common/transport/zmq_transport.h"
#include "worker/request_spans.h"
#include "worker/session/session.h"
#include "worker/training/trainer.h"
#include "worker/worker_watch.h"

namespace kumo {

class WorkerService {
 public:
  // clock, trainer and stops are borrowed for life; so is view, where this worker is shown, which
  // may be null.
  static Result<std::unique_ptr<WorkerService>> Make(const SessionSettings& settings,
                                                     const Clock* clock, Trainer* trainer,
                                                     StopSource* stops,
                                                     ProcessView* view = nullptr);

  // Takes part in the job until it is over: ok when it is done, else why this worker leaves.
  Status Run();

 private:
  // What the compute thread hands back, to be run on the loop thread.
  using Completion = std::function<WorkerActions(TimeUs now)>;

  WorkerService(Session session, const Clock* clock, Trainer* trainer, StopSource* stops,
                std::unique_ptr<ZmqTransport> transport, WorkerWatch watch);

  void OnMessage(int server, Message message);
  void Perform(WorkerActions actions);
  // One for each kind of action: an action that is not carried out does not compile.
  void Do(SendToServerAction send);
  void Do(const InitialiseAction& initialise);
  void Do(InstallAction install);
  void Do(AdoptAction adopt);
  void Do(const TrainAction& train);
  void Do(const EvaluateAction& evaluate);
  void Do(const DropAction& drop);
  void Do(const LeaveAction& leave);

  // Runs `work` on the compute thread, behind what was asked for before.
  void Compute(std::function<void()> work);
  void Complete(Completion completion) KUMO_EXCLUDES(mutex_);
  void RunCompletions() KUMO_EXCLUDES(mutex_);

  Session session_;
  const Clock* const clock_;
  Trainer* const trainer_;
  StopSource* const stops_;
  std::unique_ptr<ZmqTransport> transport_;
  WorkerWatch watch_;

  WaitNotice wait_notice_;
  bool left_ = false;
  Status result_;

  Tracer tracer_;
  TraceAgent trace_agent_;
  RequestSpans requests_;
  TimeUs idle_since_ = 0;  // the compute thread's; 0: it was not traced

  Mutex mutex_;
  std::vector<Completion> completions_ KUMO_GUARDED_BY(mutex_);
  ThreadPool compute_{1};  // last: its thread uses all of the above
};

}  // namespace kumo
