// Server service: the driver of a server node in a real process: ZeroMQ for messages, a thread pool
// for arithmetic, a thread for the disk, and on server 0 the recorder that shows the progress.
//
// Threads. The calling thread runs the loop and owns node, transport and recorder. Work for other
// threads is submitted with a completion, which the loop runs when the work is done; so the node is
// called by one thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/signals.h"
#include "common/base/process/stop_requests.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/telemetry/run_recorder.h"
#include "common/telemetry/wait_notice.h"
#include "common/trace/trace_agent.h"
#include "common/trace/tracer.h"
#include "common/transport/completion_queue.h"
#include "common/transport/zmq_transport.h"
#include "server/disks/disk.h"
#include "server/node/server_node.h"
#include "server/service/job_recorder.h"
#include "server/service/server_monitor.h"

namespace kumo {

// Transport options of a server. Errors: of reading keys.
Result<ZmqTransportOptions> TransportOptions(const ServerNodeSettings& settings);

class ServerService {
 public:
  // Listens at `bind_address`. files, clock and stops are borrowed for life; recorder is null on
  // servers other than 0. view: receives snapshots for HTTP; borrowed for life; null: none.
  static Result<std::unique_ptr<ServerService>> Make(ServerNodeSettings settings,
                                                     const std::string& bind_address,
                                                     FileSystem* files, const Clock* clock,
                                                     StopSource* stops,
                                                     std::unique_ptr<RunRecorder> recorder,
                                                     ProcessView* view = nullptr);

  // Serves until the job is over: ok if it is done, else the reason. On server 0 of a job that is
  // done, the model is at output.final_model then.
  Status Run();
  // Path of the model, on server 0 of a job that is done.
  const std::string& model() const { return model_; }
  // False if a thread still waits for its disk after Run: this object must not be destroyed then.
  bool threads_ended() const { return threads_ended_; }

 private:
  ServerService(ServerNodeSettings settings, FileSystem* files, const Clock* clock,
                StopSource* stops, std::unique_ptr<ZmqTransport> transport,
                std::unique_ptr<RunRecorder> recorder, ProcessView* view);

  void OnMessage(const PeerName& from, Message message);
  // Status of the job; nullopt unless server 0.
  std::optional<wire::JobStatus> StatusOfJob(TimeUs now) const;
  void Perform(ServerActions actions);
  // One overload for each kind of action, so that a new kind does not compile without one.
  void Do(SendAction send);
  void Do(JoinAction join);
  void Do(ComputeAction compute);
  void Do(SaveAction save);
  void Do(const RestoreAction& restore);
  void Do(const ChooseCheckpointAction& choose);
  void Do(const ReserveGenerationAction& reserve);
  void Do(CommitAction commit);
  void Do(const KeepEvaluationAction& keep);
  void Do(AnswerFromDiskAction answer);
  void Do(CheckFilesAction check);
  void Do(WritePieceAction write);
  void Do(KeepManifestAction keep);
  void Do(const EnterGenerationAction& enter);
  void Do(const DropCheckpointAction& drop);
  void Do(const BeginRunAction& begin);
  void Do(const WentBackAction& back) { recorder_.Record(back); }
  void Do(const WentOnAction& on) { recorder_.Record(on); }
  void Do(const StartedFromAction& started) { recorder_.Record(started); }
  void Do(const SavingHealthAction& health) { recorder_.Say(health); }
  void Do(const WorkerLostAction&) {}  // the monitor has seen it
  // Without effect: curves have points of several rounds, and the progress line asks the node. The
  // simulation checks the sums of each round.
  void Do(const RoundClosedAction&) {}
  void Do(const CurvePointAction& point);
  void Do(const EpochEvaluatedAction& epoch);
  void Do(const EvaluationPictureAction& picture);
  void Do(const ExitAction& exit);

  // Runs `work` on the disk's thread, after all earlier work.
  void OnDisk(std::function<void()> work) { disk_thread_.Submit(std::move(work)); }
  void OnSignals();
  void LeaveModel(int64_t version);

  const Clock* const clock_;
  const uint64_t folder_;  // token in output.directory at the start
  const std::string run_;  // name of this run; "": none
  const bool fails_if_diverged_;
  StopSource* const stops_;
  std::unique_ptr<ZmqTransport> transport_;
  CompletionQueue<ServerActions> completions_;
  JobRecorder recorder_;
  ServerMonitor monitor_;
  ServerNode node_;

  std::optional<Status> exit_;
  std::string model_;
  bool threads_ended_ = true;
  StopRequests stop_requests_{500 * kMillisecond};
  WaitNotice wait_notice_;

  Tracer tracer_;
  std::unique_ptr<Tracing> tracing_;

  Disk disk_;  // used by the disk's thread only, while that runs
  ThreadPool arithmetic_;
  ThreadPool disk_thread_{1};  // last members: their threads use all others
};

}  // namespace kumo
