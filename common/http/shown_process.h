// A process that shows itself over HTTP, as its main builds it: the view that its loop fills, and
// the server that answers from it.
//
// Thread-safety: as the parts'.
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_server.h"
#include "common/http/process_view.h"

namespace kumo {

class ShownProcess {
 public:
  // address: "HOST:PORT"; "": nothing is shown, and the result is null. asked_by: the option or
  // setting that says so, which errors name; they are those of HttpServer::Start. clock: borrowed
  // for life.
  static Result<std::unique_ptr<ShownProcess>> Start(const std::string& address,
                                                     const std::string& asked_by,
                                                     ProcessTitle title, const Clock* clock);

  ProcessView* view() { return &view_; }
  // "127.0.0.1:43211"
  const std::string& address() const { return server_->address(); }
  // "http://127.0.0.1:43211/", as a browser takes it; on every interface, by this machine's name.
  std::string Url(const std::string& host_name) const;

 private:
  ShownProcess(ProcessTitle title, const Clock* clock) : view_(std::move(title), clock) {}

  ProcessView view_;
  std::unique_ptr<HttpServer> server_;  // last: its thread reads the view
};

}  // namespace kumo
