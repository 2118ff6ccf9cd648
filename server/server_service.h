// A server process: the node's driver over ZeroMQ, with threads for the arithmetic and for the
// disk, and on server 0 the recorder that shows the progress.
//
// The calling thread owns the node, the transport and the recorder; what the other threads did
// comes back through a queue.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/process/stop_source.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/job/checkpoint/checkpoint.h"
#include "common/job/telemetry/run_recorder.h"
#include "common/job/telemetry/wait_notice.h"
#include "common/job/transport/zmq_transport.h"
#include "server/server_node.h"

namespace kumo {

class ServerService {
 public:
  // Listens at `bind_address`. files, clock and stops are borrowed for life; recorder may be null
  // (other servers than 0).
  static Result<std::unique_ptr<ServerService>> Make(ServerNodeSettings settings,
                                                     const std::string& bind_address,
                                                     FileSystem* files, const Clock* clock,
                                                     StopSource* stops,
                                                     std::unique_ptr<RunRecorder> recorder);

  // Serves until the job is over: ok when it is done, else why not.
  Status Run();

 private:
  using Completion = std::function<ServerActions(TimeUs now)>;

  ServerService(ServerNodeSettings settings, FileSystem* files, const Clock* clock,
                StopSource* stops, std::unique_ptr<ZmqTransport> transport,
                std::unique_ptr<RunRecorder> recorder);

  void Perform(ServerActions actions);
  void Complete(Completion completion) KUMO_EXCLUDES(mutex_);
  void RunCompletions() KUMO_EXCLUDES(mutex_);
  void Save(SaveAction save);
  void Restore(const RestoreAction& restore);
  void Choose(const ChooseCheckpointAction& choose);
  void Reserve(const ReserveGenerationAction& reserve);
  void Commit(checkpoint::Manifest manifest);
  void Prune();
  void KeepEvaluation(const KeepEvaluationAction& keep);
  void GoBack(const WentBackAction& back);
  void Record(const checkpoint::Origin& origin);
  void Record(const CurvePointAction& action);
  void Record(const EpochEvaluatedAction& epoch);
  void ShowProgress(TimeUs now);
  void SayWhomItWaitsFor(TimeUs now);
  // The last lines that a person sees: the result and where everything is.
  void SayFarewell();
  void OnSignals();

  const ServerNodeSettings settings_;
  const std::string folder_;  // of the checkpoints
  FileSystem* const files_;
  const Clock* const clock_;
  StopSource* const stops_;
  std::unique_ptr<ZmqTransport> transport_;
  std::unique_ptr<RunRecorder> recorder_;
  ServerNode node_;

  std::optional<Status> exit_;
  int stops_asked_ = 0;
  TimeUs stop_asked_at_ = 0;
  std::optional<double> last_accuracy_;  // on the validation set
  TimeUs next_progress_ = 0;
  WaitNotice wait_notice_;

  Mutex mutex_;
  std::vector<Completion> completions_ KUMO_GUARDED_BY(mutex_);
  int64_t committed_ = -1;  // the last version with a manifest of ours; the disk's thread alone
  ThreadPool arithmetic_;
  ThreadPool disk_{1};  // last: their threads use all of the above
};

}  // namespace kumo
