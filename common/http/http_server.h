// HTTP server for GET and HEAD requests, one request per connection, on a thread of its own.
//
// Bounds on clients: number of connections, bytes of a request's head, and time for a request with
// its answer. If there are too many connections, the oldest are closed, so a client that sends its
// request at once is answered at once, however many others are slow. The thread has a low priority.
//
// libmicrohttpd reads and writes; this class adds the loop and the limits that the library lacks.
//
// Thread-safety: created and destroyed by one thread; the handler is called on the server's thread.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/clock.h"
#include "common/base/status.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace kumo {

struct HttpResponse {
  int code = 200;
  std::string_view content_type = "text/plain; charset=utf-8";  // a string literal
  // Held until it is sent; shared between answers.
  std::shared_ptr<const std::string> body;
  bool gzip = false;  // the body is compressed
};

struct HttpLimits {
  size_t connections = 128;
  size_t request_head_bytes = 16 << 10;
  TimeUs connection = 15 * kSecond;  // from its first byte to its last
};

class HttpServer {
 public:
  // path: as requested, without the query; decoded and untrusted.
  using Handler = std::function<HttpResponse(std::string_view path)>;

  // Listens at "HOST:PORT" ("*:PORT": all interfaces; port 0: any free port), also for other
  // machines. clock must outlive the server; any thread reads it. InvalidArgument: invalid address;
  // Unavailable: another process listens there; FailedPrecondition: the address is not this
  // machine's.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, HttpLimits limits,
                                                   const Clock* clock, Handler handler);
  // Aborts the requests in progress.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:43211", with the actual port.
  const std::string& address() const { return address_; }

 private:
  struct Connection {
    int fd;
    TimeUs since;
    bool ending;  // shut down
  };
  struct Callbacks;  // for libmicrohttpd, which speaks C

  HttpServer(HttpLimits limits, const Clock* clock, Handler handler);
  Status Listen(int fd);
  void Serve();
  void EndLateConnections();
  void End(Connection* connection);
  int Answer(MHD_Connection* connection, std::string_view method, std::string_view path);

  const HttpLimits limits_;
  const Clock* const clock_;
  const Handler handler_;
  std::string address_;
  MHD_Daemon* daemon_ = nullptr;
  int wake_fd_ = -1;
  std::list<Connection> connections_;  // oldest first; used by the server's thread
  size_t ending_ = 0;                  // number of connections that are shut down
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace kumo
