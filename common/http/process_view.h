// What a process shows over HTTP, by paths:
//
//   /healthz       200 while its loop turns, 503 where that has stood still for kStuckAfter
//   /readyz        200 when it has what it needs to take part, else 503, and what it waits for
//   /metrics       for Prometheus
//   /status.json   server 0: what `kumo status --json` prints
//   /history.json  server 0: the run so far (run_history.h)
//   /              server 0: the page, with its own files beside it
//
// The process's loop hands in snapshots, which never change; it waits for nobody who reads them.
// What is asked for again before there is a newer one is not made again, so however many ask, one
// text a second is made of each kind.
//
// Thread-safety: Turned, SnapshotIsDue, Publish and LetWatchersSee are the loop's, Answer the HTTP
// server's thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "common/http/metrics_text.h"
#include "common/http/process_snapshot.h"

namespace kumo {

class ProcessView {
 public:
  static constexpr TimeUs kStuckAfter = 30 * kSecond;
  static constexpr TimeUs kInterval = kSecond;  // between snapshots, and between texts

  // clock: borrowed for life.
  ProcessView(ProcessTitle title, const Clock* clock) : title_(std::move(title)), clock_(clock) {}

  // The process's loop has come round.
  void Turned(TimeUs now) { turned_.store(now, std::memory_order_relaxed); }
  bool SnapshotIsDue(TimeUs now) const { return now >= next_; }
  void Publish(ProcessSnapshot snapshot, TimeUs now) KUMO_EXCLUDES(mutex_);
  // Waits until somebody who has asked for the status lately has asked again, so that a page which
  // is open learns of the end; as long as `limit` at most, and not at all where nobody asks.
  void LetWatchersSee(TimeUs limit) KUMO_EXCLUDES(mutex_);

  HttpResponse Answer(std::string_view path) KUMO_EXCLUDES(mutex_);

 private:
  struct Made {
    std::shared_ptr<const ProcessSnapshot> of;
    TimeUs at = 0;
    std::shared_ptr<const std::string> text;
  };

  HttpResponse Health(TimeUs now) const;
  HttpResponse OfServer0(std::string_view path, const std::shared_ptr<const ProcessSnapshot>& of,
                         TimeUs now);
  // The text at a path, made anew by `make` where it has to be.
  template <typename Make>
  std::shared_ptr<const std::string> Text(std::string_view path,
                                          const std::shared_ptr<const ProcessSnapshot>& of,
                                          TimeUs now, const Make& make);

  const ProcessTitle title_;
  const Clock* const clock_;
  std::atomic<TimeUs> turned_ = -1;  // -1: not yet
  TimeUs next_ = 0;

  Mutex mutex_;  // held as long as a pointer is copied
  CondVar asked_;
  std::shared_ptr<const ProcessSnapshot> snapshot_ KUMO_GUARDED_BY(mutex_);
  TimeUs status_asked_at_ KUMO_GUARDED_BY(mutex_) = -1;  // -1: not yet
  uint64_t status_asked_ KUMO_GUARDED_BY(mutex_) = 0;    // times
  std::map<std::string, Made, std::less<>> made_;        // the HTTP server's thread's
};

}  // namespace kumo
