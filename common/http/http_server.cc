#include "common/http/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <glog/logging.h>

#include "common/base/address.h"
#include "common/base/thread.h"

namespace kumo {
namespace {

constexpr int kLongestWaitMs = 1000;  // longest delay in closing late connections
constexpr int kNice = 10;
// Browser policy: show only what this server sends.
constexpr const char* kHeaders[][2] = {
    {MHD_HTTP_HEADER_CONNECTION, "close"},
    {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
    {"Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
};

}  // namespace

struct HttpServer::Callbacks {
  static MHD_Result Answer(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* /*upload*/,
                           size_t* /*upload_size*/, void** /*request*/) {
    // Answer at once, whatever else the request contains: the connection ends with the answer.
    return static_cast<HttpServer*>(self)->Answer(connection, method, url) != 0 ? MHD_YES : MHD_NO;
  }

  static void Notify(void* self, MHD_Connection* connection, void** context,
                     MHD_ConnectionNotificationCode code) {
    auto* const server = static_cast<HttpServer*>(self);
    using Place = std::list<Connection>::iterator;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      const MHD_ConnectionInfo* info =
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
      auto& all = server->connections_;
      all.push_back({info->connect_fd, server->clock_->NowUs(), false});
      *context = new Place(std::prev(all.end()));
      if (all.size() - server->ending_ > server->limits_.connections) {
        const auto oldest =
            std::find_if(all.begin(), all.end(), [](const Connection& one) { return !one.ending; });
        server->End(&*oldest);
      }
      return;
    }
    const std::unique_ptr<Place> place(static_cast<Place*>(*context));
    if ((*place)->ending) --server->ending_;
    server->connections_.erase(*place);
    *context = nullptr;
  }

  static void Log(void* /*self*/, const char* format, va_list arguments) {
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);  // NOLINT: the format is the library's
    VLOG(1) << "http: " << text;
  }
};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, HttpLimits limits,
                                                      const Clock* clock, Handler handler) {
  KUMO_ASSIGN_OR_RETURN(const Address where, ParseHttpAddress(address));
  // Readers cannot change anything, so all interfaces are allowed.
  KUMO_ASSIGN_OR_RETURN(const Listener listener, ListenTcp(where, /*insecure=*/true));
  std::unique_ptr<HttpServer> server(new HttpServer(limits, clock, std::move(handler)));
  server->address_ = listener.address.ToString().substr(std::strlen("tcp://"));
  KUMO_RETURN_IF_ERROR(server->Listen(listener.fd));
  server->thread_ = StartThread([raw = server.get()] { raw->Serve(); });
  return server;
}

HttpServer::HttpServer(HttpLimits limits, const Clock* clock, Handler handler)
    : limits_(limits), clock_(clock), handler_(std::move(handler)) {}

Status HttpServer::Listen(int fd) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ >= 0) {
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, &Callbacks::Answer, this,
        MHD_OPTION_EXTERNAL_LOGGER, &Callbacks::Log, nullptr, MHD_OPTION_LISTEN_SOCKET, fd,
        // Connections that were shut down stay in the library for a moment.
        MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(2 * limits_.connections),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.request_head_bytes,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::Notify, this,
        MHD_OPTION_END);
  }
  if (daemon_ != nullptr) return OkStatus();
  const int error = errno;
  close(fd);
  return Unavailable("cannot serve HTTP at " + address_ + ": " + std::strerror(error));
}

HttpServer::~HttpServer() {
  stop_ = true;
  if (wake_fd_ >= 0) eventfd_write(wake_fd_, 1);
  if (thread_.joinable()) thread_.join();
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  if (wake_fd_ >= 0) close(wake_fd_);
}

void HttpServer::Serve() {
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread only, on Linux
  const int epoll_fd = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  while (!stop_) {
    MHD_UNSIGNED_LONG_LONG due = kLongestWaitMs;
    if (MHD_get_timeout(daemon_, &due) != MHD_YES) due = kLongestWaitMs;
    pollfd events[] = {{epoll_fd, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    poll(events, 2,
         std::min(static_cast<int>(std::min<MHD_UNSIGNED_LONG_LONG>(due, INT32_MAX)),
                  kLongestWaitMs));
    MHD_run(daemon_);
    EndLateConnections();
  }
}

void HttpServer::EndLateConnections() {
  const TimeUs now = clock_->NowUs();
  for (Connection& connection : connections_) {
    if (now - connection.since < limits_.connection) return;
    End(&connection);
  }
}

// The library notices the shutdown when it next looks at the connection, and closes it.
void HttpServer::End(Connection* connection) {
  if (connection->ending) return;
  connection->ending = true;
  ++ending_;
  shutdown(connection->fd, SHUT_RDWR);
}

int HttpServer::Answer(MHD_Connection* connection, std::string_view method, std::string_view path) {
  HttpResponse answer;
  const bool reads = method == MHD_HTTP_METHOD_GET || method == MHD_HTTP_METHOD_HEAD;
  if (reads) {
    answer = handler_(path);
  } else {
    answer.code = MHD_HTTP_METHOD_NOT_ALLOWED;
    static const auto kBody = std::make_shared<const std::string>("only GET and HEAD\n");
    answer.body = kBody;
  }
  auto* const held = new std::shared_ptr<const std::string>(answer.body);
  MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
      answer.body->size(), const_cast<char*>(answer.body->data()),
      [](void* owner) { delete static_cast<std::shared_ptr<const std::string>*>(owner); }, held);
  if (response == nullptr) {
    delete held;
    return 0;
  }
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.data());
  if (answer.gzip) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
  if (!reads) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return queued == MHD_YES ? 1 : 0;
}

}  // namespace kumo
