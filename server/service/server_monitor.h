// Server monitor: the figures that a server shows over HTTP. It sees each action that the service
// carries out, counts, and publishes a snapshot once a second.
//
// The job does not depend on it; without a view it does nothing. Owned by the driver, on its loop
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/http/process_snapshot.h"
#include "common/http/process_view.h"
#include "common/http/run_history.h"
#include "common/transport/transport_counters.h"
#include "proto/wire.pb.h"
#include "server/protocol/actions.h"

namespace kumo {

class ServerMonitor {
 public:
  // view: receives the snapshots; borrowed for life; null: there are none.
  explicit ServerMonitor(ProcessView* view) : view_(view) {}

  // One iteration of the loop. Returns whether a snapshot is due.
  bool OnLoop(TimeUs now);
  // An action is about to be carried out.
  void See(const ServerAction& action, TimeUs now);
  // A file of a checkpoint has been written, or failed, `took` after the request.
  void OnSaved(const Result<SavedShardFile>& file, TimeUs took);
  // A checkpoint's manifest was written, or failed.
  void OnCommitted(int64_t version, const Status& status, TimeUs now);

  // job: status of the job; nullopt unless server 0.
  void Publish(const std::optional<wire::JobStatus>& job, const TransportCounters& traffic,
               int64_t queue_bytes, TimeUs now);
  // The last snapshot, of a job that is over with `end`. Waits a moment so that open pages get it.
  void PublishEnd(const wire::JobStatus& job, const TransportCounters& traffic, const Status& end,
                  TimeUs now);

 private:
  void Note(const SendAction& send);
  void Note(const RoundClosedAction& round);
  void Note(const WentBackAction& back);
  void Note(const WentOnAction& on);
  void Note(const WorkerLostAction& lost);
  void Note(const EpochEvaluatedAction& epoch);
  void Note(const StartedFromAction& started);
  template <typename Other>
  void Note(const Other&) {}

  double ElapsedSeconds() const { return elapsed_s_ + ToSeconds(now_ - elapsed_at_); }
  void AddEvent(HistoryEvent::Kind kind, int64_t round, std::string text);
  void AddPoint(const wire::JobStatus& job, TimeUs now);

  ProcessView* const view_;
  TimeUs now_ = 0;         // of the call
  double elapsed_s_ = 0;   // seconds of the job in the last status ...
  TimeUs elapsed_at_ = 0;  // ... and the time of that status
  int64_t round_ = 0;      // in the last status

  wire::ServerReport report_;  // a follower's, as it was sent to server 0
  uint64_t refused_peers_ = 0;
  FileCounts files_;
  JobCounts counts_;
  std::optional<TimeUs> round_closed_at_;
  HistoryPoint point_;  // since the last snapshot
  std::optional<TimeUs> point_since_;
  RunHistory history_;
};

}  // namespace kumo
