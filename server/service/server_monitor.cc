#include "server/service/server_monitor.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "common/transport/message.h"
#include "server/service/job_recorder.h"

namespace kumo {
namespace {

constexpr TimeUs kLookAtTheEnd = 1500 * kMillisecond;

}  // namespace

bool ServerMonitor::OnLoop(TimeUs now) {
  if (view_ == nullptr) return false;
  view_->Turned();
  return view_->SnapshotIsDue(now);
}

void ServerMonitor::See(const ServerAction& action, TimeUs now) {
  if (view_ == nullptr) return;
  now_ = now;
  std::visit([this](const auto& one) { Note(one); }, action);
}

void ServerMonitor::Note(const SendAction& send) {
  const wire::Header& header = send.message.header;
  if (header.type() == wire::REFUSED) ++refused_peers_;
  if (header.type() == wire::HEARTBEAT && header.has_server_report()) {
    report_ = header.server_report();
  }
}

void ServerMonitor::Note(const RoundClosedAction& round) {
  ++counts_.rounds;
  counts_.samples += static_cast<uint64_t>(round.samples);
  if (round_closed_at_) counts_.round_seconds.Add(ToSeconds(now_ - *round_closed_at_));
  round_closed_at_ = now_;
  round_ = round.round + 1;
  history_.SetMetrics(round.metrics);
  point_.sums.Add(round.sums);
}

void ServerMonitor::Note(const WentBackAction& back) {
  ++counts_.went_back;
  round_closed_at_.reset();
  round_ = std::max<int64_t>(0, back.version);
  AddEvent(HistoryEvent::Kind::kWentBack, round_,
           back.why + (back.version < 0 ? "" : ": goes on from round " + std::to_string(round_)));
}

void ServerMonitor::Note(const WentOnAction& on) {
  ++counts_.took_over;
  round_ = on.version;
  AddEvent(HistoryEvent::Kind::kFailure, round_, "a new server 0 has taken over");
}

void ServerMonitor::Note(const WorkerLostAction& lost) {
  ++counts_.lost_workers;
  AddEvent(HistoryEvent::Kind::kWorkerLost, round_, lost.what);
}

void ServerMonitor::Note(const EpochEvaluatedAction& epoch) {
  if (epoch.validation.samples == 0) return;
  history_.SetMetrics(epoch.metrics);
  history_.Add(HistoryEvaluation{ElapsedSeconds(), epoch.epoch + 1,
                                 epoch.metrics.FiguresOf(epoch.validation)});
}

void ServerMonitor::Note(const StartedFromAction& started) {
  AddEvent(HistoryEvent::Kind::kStart, 0, "begins with weights of " + started.origin.checkpoint());
}

void ServerMonitor::OnSaved(const Result<SavedShardFile>& file, TimeUs took) {
  if (!file.ok()) {
    ++files_.failures;
    return;
  }
  files_.seconds.Add(ToSeconds(took));
  files_.bytes += file->bytes;
}

void ServerMonitor::OnCommitted(int64_t version, const Status& status, TimeUs now) {
  now_ = now;
  if (!status.ok()) {
    AddEvent(HistoryEvent::Kind::kFailure, version, "no checkpoint: " + status.message());
    return;
  }
  ++counts_.checkpoints;
  AddEvent(HistoryEvent::Kind::kCheckpoint, version,
           "checkpoint of round " + std::to_string(version));
}

void ServerMonitor::AddEvent(HistoryEvent::Kind kind, int64_t round, std::string text) {
  if (view_ == nullptr) return;
  history_.Add(HistoryEvent{kind, ElapsedSeconds(), round, std::move(text)});
}

void ServerMonitor::AddPoint(const wire::JobStatus& job, TimeUs now) {
  elapsed_s_ = job.elapsed_seconds();
  elapsed_at_ = now_ = now;
  round_ = job.round();
  if (counts_.rounds > 0 && point_since_) {
    const RoundProgress progress = ProgressOf(job);
    point_.until_s = elapsed_s_;
    point_.seconds = ToSeconds(now - *point_since_);
    point_.round = round_;
    point_.workers = progress.workers;
    const auto add = [](const std::optional<double>& value, KnownSum* sum) {
      if (value) sum->Add(*value);
    };
    add(progress.learning_rate, &point_.learning_rate);
    add(progress.compute_ms, &point_.compute_ms);
    add(progress.wait_ms, &point_.wait_ms);
    add(progress.network_ms, &point_.network_ms);
    history_.Add(point_);
    point_ = {};
  }
  point_since_ = now;
}

void ServerMonitor::Publish(const std::optional<wire::JobStatus>& job,
                            const TransportCounters& traffic, int64_t queue_bytes, TimeUs now) {
  if (view_ == nullptr) return;
  ProcessSnapshot snapshot;
  snapshot.traffic = traffic;
  snapshot.queue_bytes = queue_bytes;
  snapshot.refused_peers = refused_peers_;
  snapshot.files = files_;
  if (job) {
    AddPoint(*job, now);
    snapshot.job = job;
    snapshot.counts = counts_;
    snapshot.history = std::make_shared<const RunHistory>(history_);
    snapshot.ready = job->servers_size() > 0 && job->servers(0).report().ready();
    snapshot.waits_for = job->waits_for();
  } else {
    snapshot.ready = report_.ready();
    snapshot.waits_for = report_.waits_for().empty() ? "server 0" : report_.waits_for();
  }
  view_->Publish(std::move(snapshot), now);
}

void ServerMonitor::PublishEnd(const wire::JobStatus& job, const TransportCounters& traffic,
                               const Status& end, TimeUs now) {
  if (view_ == nullptr) return;
  now_ = now;
  AddEvent(HistoryEvent::Kind::kEnd, job.round(), end.ok() ? "done" : end.message());
  Publish(job, traffic, 0, now);
  view_->LetWatchersSee(kLookAtTheEnd);
}

}  // namespace kumo
