#include "common/job/http/shown_process.h"

#include <utility>

#include <glog/logging.h>

namespace kumo {

Result<std::unique_ptr<ShownProcess>> ShownProcess::Start(const std::string& address,
                                                          ProcessTitle title, const Clock* clock) {
  if (address.empty()) return std::unique_ptr<ShownProcess>();
  std::unique_ptr<ShownProcess> shown(new ShownProcess(std::move(title), clock));
  ProcessView* const view = shown->view();
  auto server = HttpServer::Start(address, {}, clock,
                                  [view](std::string_view path) { return view->Answer(path); });
  if (!server.ok()) return server.status().WithContext("--http");
  shown->server_ = std::move(server).value();
  LOG(INFO) << "shows itself at http://" << shown->address() << "/";
  return shown;
}

}  // namespace kumo
