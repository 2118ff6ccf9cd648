// Worker service: the driver of a worker's session over ZeroMQ, with two threads for the
// arithmetic.
//
// The calling thread owns the session and the transport; the compute thread owns the training
// engine. They exchange work through two queues: computations, in order, and their completions.
//
// If a partition trains ahead, the compute thread goes on with these steps when a block's steps
// have ended. If the engine allows it, the coding thread meanwhile codes the block, and then
// installs the next version. No other computation begins before the coding thread is idle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/process/logging.h"
#include "common/base/process/signals.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/settings/experiment.h"
#include "common/telemetry/wait_notice.h"
#include "common/trace/trace_agent.h"
#include "common/trace/tracer.h"
#include "common/transport/completion_queue.h"
#include "common/transport/zmq_transport.h"
#include "worker/request_spans.h"
#include "worker/session/session.h"
#include "worker/session/training_engine.h"
#include "worker/worker_monitor.h"

namespace kumo {

// The log of a worker with this name.
LogSettings LogOfWorker(const std::string& program, const Experiment& experiment,
                        const std::string& name);

class WorkerService {
 public:
  // clock, engine and stops must outlive this object; so must view, the status page's data, which
  // may be null.
  static Result<std::unique_ptr<WorkerService>> Make(const SessionSettings& settings,
                                                     const Clock* clock, TrainingEngine* engine,
                                                     StopSource* stops,
                                                     ProcessView* view = nullptr);

  // Takes part in the job until it ends: ok if the job is done, otherwise the reason for leaving.
  Status Run();
  // Behind Run: whether it left on request, without a loss.
  bool handed_over() const { return handed_over_; }
  // Behind Run: whether the job has ended for all workers, well or not.
  bool job_ended() const { return job_ended_; }

 private:
  WorkerService(Session session, const Clock* clock, TrainingEngine* engine, StopSource* stops,
                std::unique_ptr<ZmqTransport> transport, WorkerMonitor monitor);

  void OnMessage(int server, Message message);
  void Perform(WorkerActions actions);
  // One overload per kind of action: an unhandled kind does not compile.
  void Do(SendToServerAction send);
  void Do(const InitialiseAction& initialise);
  void Do(InstallAction install);
  void Do(AdoptAction adopt);
  void Do(const TrainAction& train);
  void Do(const TrainAheadAction& train);
  void Do(const EvaluateAction& evaluate);
  void Do(const DropAction& drop);
  void Do(const LeaveAction& leave);

  // Runs `work` on the compute thread after all earlier work.
  void Compute(std::function<void()> work);
  // Runs `work` on the coding thread, or here if the engine has no use for that thread.
  void Code(std::function<void()> work) KUMO_EXCLUDES(mutex_);
  // Runs `work` on one of these threads. Exceptions that it throws, such as a failed allocation,
  // are the worker's failure: a program may go on without this worker.
  void Try(const std::function<void()>& work);
  void WaitForCoding() KUMO_EXCLUDES(mutex_);
  // On the compute thread: the steps that follow a block.
  void StepAhead(const TrainAction& train);

  Session session_;
  const Clock* const clock_;
  TrainingEngine* const engine_;
  StopSource* const stops_;
  std::unique_ptr<ZmqTransport> transport_;
  CompletionQueue<WorkerActions> completions_;
  WorkerMonitor monitor_;

  WaitNotice wait_notice_;
  bool left_ = false;
  bool handed_over_ = false;
  bool job_ended_ = false;
  Status result_;

  Tracer tracer_;
  TraceAgent trace_agent_;
  RequestSpans requests_;
  // The compute thread's:
  TimeUs idle_since_ = 0;                      // 0: not traced
  std::optional<Result<TrainedAhead>> ahead_;  // the steps that followed the last block

  bool keeps_ahead_ = false;  // the loop thread waits for OnTrainedAhead
  Mutex mutex_;
  CondVar coded_;
  int to_code_ KUMO_GUARDED_BY(mutex_) = 0;  // tasks of the coding thread, the running one included
  // Last members: their threads use the members above.
  ThreadPool coding_;
  ThreadPool compute_{1};
};

}  // namespace kumo
