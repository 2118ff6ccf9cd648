// A small HTTP server for reading: GET and HEAD, one request a connection, on one thread of its
// own.
//
// What whoever connects can take from the process is bounded: so many connections, so many bytes of
// a request's head, so long for a whole request and its answer. Where more connect than there is
// room for, those go that have been there longest: who sends a request at once is answered at once,
// however many others send theirs slowly or never. The thread runs at a low priority.
//
// libmicrohttpd reads and writes; here are the loop around it and the limits that it has not.
//
// Thread-safety: made and ended by one thread; the handler is called on the server's own.
#pragma once

#include <atomic>
#include <cstdint>
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
  std::string_view content_type = "text/plain; charset=utf-8";  // of a literal
  // Held until it is sent; shared, so that many answers are one string.
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
  // path: as it was asked for, without what is behind a '?'; decoded, and anything but trusted.
  using Handler = std::function<HttpResponse(std::string_view path)>;

  // Listens at "HOST:PORT" ("*:PORT": every interface; port 0: any free one), also where other
  // machines reach it. clock: borrowed for life; any thread asks it. InvalidArgument: no such
  // address can be; Unavailable: another process listens there; FailedPrecondition: it is not this
  // machine's.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, HttpLimits limits,
                                                   const Clock* clock, Handler handler);
  // Ends what is being served.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:43211", with the port that is really listened on.
  const std::string& address() const { return address_; }

 private:
  struct Connection {
    int fd;
    TimeUs since;
    bool ending;  // was shut down
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
  std::list<Connection> connections_;  // oldest first; the thread's
  size_t ending_ = 0;                  // of them
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace kumo
