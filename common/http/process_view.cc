#include "common/http/process_view.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "common/http/metrics_text.h"
#include "common/http/page_assets.h"
#include "common/telemetry/job_json.h"

namespace kumo {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4; charset=utf-8";
// Clients that asked within this time count as watching.
constexpr TimeUs kLately = 5 * kSecond;

HttpResponse Plain(int code, std::string text) {
  HttpResponse response;
  response.code = code;
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

HttpResponse Answered(std::string_view content_type, std::shared_ptr<const std::string> text) {
  HttpResponse response;
  response.content_type = content_type;
  response.body = std::move(text);
  return response;
}

}  // namespace

void ProcessView::Publish(ProcessSnapshot snapshot, TimeUs now) {
  next_ = now + kInterval;
  auto published = std::make_shared<const ProcessSnapshot>(std::move(snapshot));
  MutexLock lock(mutex_);
  snapshot_.swap(published);
}

void ProcessView::LetWatchersSee(TimeUs limit) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(limit);
  MutexLock lock(mutex_);
  if (status_asked_at_ < 0 || clock_->NowUs() - status_asked_at_ > kLately) return;
  const uint64_t asked = status_asked_;
  while (status_asked_ == asked) {
    if (!asked_.WaitUntil(mutex_, until)) return;
  }
}

HttpResponse ProcessView::Answer(std::string_view path) {
  const TimeUs now = clock_->NowUs();
  if (path == "/healthz") return Health(now);
  std::shared_ptr<const ProcessSnapshot> snapshot;
  {
    MutexLock lock(mutex_);
    snapshot = snapshot_;
    if (path == "/status.json") {
      status_asked_at_ = now;
      ++status_asked_;
      asked_.NotifyAll();
    }
  }
  if (path == "/readyz") {
    if (snapshot != nullptr && snapshot->ready) return Plain(200, "ready\n");
    const std::string why = snapshot == nullptr ? "" : snapshot->waits_for;
    return Plain(503, why.empty() ? "starts\n" : "waits for " + why + "\n");
  }
  if (path == "/metrics") {
    return Answered(kPrometheus, Text(path, snapshot, now, [&] {
                      return MetricsText(title_, LookAtOwnProcess(), snapshot.get());
                    }));
  }
  return OfServer0(path, snapshot, now);
}

HttpResponse ProcessView::Health(TimeUs now) const {
  const TimeUs turned = turned_.load(std::memory_order_relaxed);
  if (turned < 0) return Plain(200, "starts\n");
  const TimeUs still = std::max<TimeUs>(0, now - turned);
  if (still < kStuckAfter) return Plain(200, "ok\n");
  return Plain(503, "the loop has not turned for " + InWholeSeconds(still) + "\n");
}

HttpResponse ProcessView::OfServer0(std::string_view path,
                                    const std::shared_ptr<const ProcessSnapshot>& of, TimeUs now) {
  const bool shows_job = of != nullptr && of->job.has_value();
  if (path == "/status.json" && shows_job) {
    return Answered(kJson, Text(path, of, now, [&] { return JobJson(*of->job) + "\n"; }));
  }
  if (path == "/history.json" && shows_job && of->history != nullptr) {
    return Answered(kJson, Text(path, of, now, [&] { return of->history->Json() + "\n"; }));
  }
  if (title_.coordinates && (path == "/status.json" || path == "/history.json")) {
    return Plain(503, "starts\n");
  }
  for (const PageAsset& asset : PageAssets()) {
    if (!title_.coordinates || asset.path != path) continue;
    HttpResponse response = Answered(
        asset.content_type, Text(path, nullptr, 0, [&] { return std::string(asset.bytes); }));
    response.gzip = asset.gzip;
    return response;
  }
  return Plain(404, title_.coordinates
                        ? "available: /, /metrics, /healthz, /readyz, /status.json and "
                          "/history.json\n"
                        : "available: /metrics, /healthz and /readyz; server 0 shows the "
                          "job\n");
}

template <typename Make>
std::shared_ptr<const std::string> ProcessView::Text(
    std::string_view path, const std::shared_ptr<const ProcessSnapshot>& of, TimeUs now,
    const Make& make) {
  const auto found = made_.find(path);
  if (found != made_.end() && found->second.of == of && now - found->second.at < kInterval) {
    return found->second.text;
  }
  auto text = std::make_shared<const std::string>(make());
  made_.insert_or_assign(std::string(path), ProcessView::Made{of, now, text});
  return text;
}

Result<std::unique_ptr<ShownProcess>> ShownProcess::Start(const std::string& address,
                                                          const std::string& asked_by,
                                                          ProcessTitle title) {
  if (address.empty()) return std::unique_ptr<ShownProcess>();
  std::unique_ptr<ShownProcess> shown(new ShownProcess(std::move(title)));
  ProcessView* const view = shown->view();
  auto server = HttpServer::Start(address, {}, &shown->clock_,
                                  [view](std::string_view path) { return view->Answer(path); });
  if (!server.ok()) return server.status().WithContext(asked_by);
  shown->server_ = std::move(server).value();
  LOG(INFO) << "serves http://" << shown->address() << "/";
  return shown;
}

std::string ShownProcess::Url(const std::string& host_name) const {
  std::string where = address();
  for (const std::string_view every : {"0.0.0.0:", "[::]:"}) {
    if (where.starts_with(every)) where = host_name + where.substr(every.size() - 1);
  }
  return "http://" + where + "/";
}

}  // namespace kumo
