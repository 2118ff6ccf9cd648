// Bytes to an HTTP server on loopback, and back.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kumo {

class HttpClient {
 public:
  // address: "127.0.0.1:PORT"
  explicit HttpClient(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
    const timeval limit{60, 0};  // reaching it is a failure
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~HttpClient() { close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  void Send(const std::string& bytes) { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Until the server closes.
  std::string Receive() {
    std::string all;
    char part[4096];
    for (ssize_t n; (n = recv(fd_, part, sizeof part, 0)) > 0;) all.append(part, n);
    return all;
  }

  static std::string Get(const std::string& address, const std::string& path) {
    HttpClient client(address);
    client.Send("GET " + path + " HTTP/1.1\r\nHost: kumo\r\n\r\n");
    return client.Receive();
  }
  static std::string Body(const std::string& answer) {
    const size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }

 private:
  int fd_;
  bool connected_ = false;
};

}  // namespace kumo
