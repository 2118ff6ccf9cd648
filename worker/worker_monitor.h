// What a worker shows of itself over HTTP: it looks on while the service sends the session's
// messages, and once a second makes a snapshot of what the last report said.
//
// Nothing that a job does depends on it; where nobody is to see anything (no view) it does nothing.
// Owned by the driver, on its loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/http/process_view.h"
#include "common/trace/tracer.h"
#include "common/transport/transport_counters.h"
#include "proto/wire.pb.h"

namespace kumo {

class WorkerWatch {
 public:
  // view: where it is shown; borrowed for life, null for nowhere.
  WorkerWatch(ProcessView* view, const std::string& name) : view_(view) { worker_.set_name(name); }

  // The loop has come round: whether a snapshot is due.
  bool StepContext(TimeUs now) {
    if (view_ == nullptr) return false;
    view_->Turned(now);
    return view_->SnapshotIsDue(now);
  }
  // A message is about to be sent. Reports go to a server that has welcomed the worker.
  void See(const wire::Header& header) {
    if (view_ == nullptr || !header.has_worker_report()) return;
    *worker_.mutable_report() = header.worker_report();
    joined_ = header.type() == wire::HEARTBEAT;
  }
  // waits_for: whom the worker waits for, "" for nobody.
  void Publish(const std::string& waits_for, const TransportCounters& traffic, int64_t queue_bytes,
               TimeUs now) {
    ProcessSnapshot snapshot;
    snapshot.ready = joined_;
    snapshot.waits_for = waits_for.empty() ? "server 0" : waits_for;
    snapshot.traffic = traffic;
    snapshot.queue_bytes = queue_bytes;
    snapshot.worker = worker_;
    view_->Publish(std::move(snapshot), now);
  }

 private:
  ProcessView* const view_;
  wire::JobStatus::Worker worker_;
  bool joined_ = false;
};

// How long a worker's requests take, for a trace: from the first sending of a PUSH or a PULL until
// its answer is there.
//
// Belongs to the driver's loop thread.
class RequestSpans {
 public:
  // tracer is borrowed for life.
  explicit RequestSpans(Tracer* tracer) : tracer_(tracer) {}

  void OnSent(int server, const wire::Header& header, TimeUs now);
  void OnArrived(int server, const wire::Header& header, TimeUs now);

 private:
  struct Open {
    trace::Kind kind = trace::KIND_UNSPECIFIED;
    TimeUs begin = 0;
    TraceSubject subject;
  };

  Tracer* const tracer_;
  std::map<std::pair<int, uint64_t>, Open> open_;  // by server and request
};


}  // namespace kumo
