// Worker monitor: observes the messages that a worker sends, for its HTTP page and its Prometheus
// metrics. Training does not depend on it.
//
// Owned by the driver, on its loop thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/http/process_view.h"
#include "common/transport/transport_counters.h"
#include "proto/wire.pb.h"

namespace kumo {

// Publishes a snapshot of the last report once a second. Does nothing without a view.
class WorkerMonitor {
 public:
  // view: where the snapshots go; must outlive this object; null: nowhere.
  WorkerMonitor(ProcessView* view, const std::string& name) : view_(view) {
    worker_.set_name(name);
  }

  // One iteration of the loop. Returns whether a snapshot is due.
  bool OnLoop(TimeUs now) {
    if (view_ == nullptr) return false;
    view_->Turned();
    return view_->SnapshotIsDue(now);
  }
  // A message is about to be sent. Heartbeats go only to a server that has welcomed the worker.
  void See(const wire::Header& header) {
    if (view_ == nullptr || !header.has_worker_report()) return;
    *worker_.mutable_report() = header.worker_report();
    joined_ = header.type() == wire::HEARTBEAT;
  }
  // waits_for: the process that the worker waits for; "" if none.
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

}  // namespace kumo
