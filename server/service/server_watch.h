// What a server shows of itself over HTTP: it looks on while the service carries its node's actions
// out, counts, and once a second makes a snapshot of what there is to see.
//
// Nothing that a job does depends on it; where nobody is to see anything (no view) it does nothing.
// Owned by the driver, on its loop thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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

class ServerWatch {
 public:
  // view: where it is shown; borrowed for life, null for nowhere.
  explicit ServerWatch(ProcessView* view) : view_(view) {}

  // The loop has come round: whether a snapshot is due.
  bool StepContext(TimeUs now);
  // An action is about to be carried out.
  void See(const ServerAction& action, TimeUs now);
  // A file of a checkpoint has been written, `took` after it was asked for.
  void OnSaved(const Result<SavedShardFile>& file, TimeUs took);
  // A checkpoint's manifest was written, or why not.
  void OnCommitted(int64_t version, const Status& status, TimeUs now);

  // job: server 0's status; none on others.
  void Publish(const std::optional<wire::JobStatus>& job, const TransportCounters& traffic,
               int64_t queue_bytes, TimeUs now);
  // The last snapshot, of a job that is over: `end`, whom those who look may see for a moment.
  void PublishEnd(const wire::JobStatus& job, const TransportCounters& traffic, const Status& end,
                  TimeUs now);

 private:
  void Note(const SendAction& send);
  void Note(const RoundClosedAction& round);
  void Note(const WentBackAction& back);
  void Note(const WentOnAction& on);
  void Note(const EpochEvaluatedAction& epoch);
  void Note(const StartedFromAction& started);
  template <typename Other>
  void Note(const Other&) {}

  double ElapsedSeconds() const { return elapsed_s_ + ToSeconds(now_ - elapsed_at_); }
  void AddEvent(HistoryEvent::Kind kind, int64_t round, std::string text);
  // Workers that were silent, and are not there any more.
  void CountLost(const wire::JobStatus& job);
  void AddPoint(const wire::JobStatus& job, TimeUs now);

  ProcessView* const view_;
  TimeUs now_ = 0;                // of the call
  double elapsed_s_ = 0;          // of the job, as last told ...
  TimeUs elapsed_at_ = 0;         // ... and when that was
  int64_t round_ = 0;             // likewise
  std::set<std::string> silent_;  // workers, likewise

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
