#include "common/http/shown_process.h"

#include <string_view>
#include <utility>

#include <glog/logging.h>

namespace kumo {

Result<std::unique_ptr<ShownProcess>> ShownProcess::Start(const std::string& address,
                                                          const std::string& asked_by,
                                                          ProcessTitle title, const Clock* clock) {
  if (address.empty()) return std::unique_ptr<ShownProcess>();
  std::unique_ptr<ShownProcess> shown(new ShownProcess(std::move(title), clock));
  ProcessView* const view = shown->view();
  auto server = HttpServer::Start(address, {}, clock,
                                  [view](std::string_view path) { return view->Answer(path); });
  if (!server.ok()) return server.status().WithContext(asked_by);
  shown->server_ = std::move(server).value();
  LOG(INFO) << "shows itself at http://" << shown->address() << "/";
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
