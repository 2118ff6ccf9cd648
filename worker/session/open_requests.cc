#include "worker/session/open_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kumo {
namespace {

constexpr TimeUs kFirstInterval = 5 * kSecond;
constexpr TimeUs kLastInterval = 40 * kSecond;

}  // namespace

const Message& OpenRequests::Add(int server, Message message, TimeUs now) {
  const wire::Header& header = message.header;
  const Key key{header.type(), header.partition(), header.chunk(), header.slot()};
  Request& request = requests_[key];
  request = {server, std::move(message), now + kFirstInterval, kFirstInterval};
  return request.message;
}

bool OpenRequests::Waits(const Key& key, int64_t round) const {
  const auto request = requests_.find(key);
  return request != requests_.end() && request->second.message.header.round() == round;
}

bool OpenRequests::Waits(const Key& key) const {
  const auto request = requests_.find(key);
  return request != requests_.end() && !request->second.held;
}

bool OpenRequests::Waits(wire::Type type, int partition) const {
  constexpr int kLeast = std::numeric_limits<int>::min();
  for (auto request = requests_.lower_bound({type, partition, kLeast, kLeast});
       request != requests_.end() && request->first.type == type &&
       request->first.partition == partition;
       ++request) {
    if (!request->second.held) return true;
  }
  return false;
}

void OpenRequests::Hold(const Key& key, TimeUs now) {
  const auto request = requests_.find(key);
  if (request == requests_.end()) return;
  request->second.held = true;
  request->second.interval = kLastInterval;
  request->second.resend_at = now + kLastInterval;
}

void OpenRequests::Drop(wire::Type type, int partition) {
  std::erase_if(requests_, [&](const auto& entry) {
    return entry.first.type == type && entry.first.partition == partition;
  });
}

std::vector<const OpenRequests::Request*> OpenRequests::Due(TimeUs now) {
  std::vector<const Request*> due;
  for (auto& [key, request] : requests_) {
    if (now < request.resend_at) continue;
    request.interval = std::min(2 * request.interval, kLastInterval);
    request.resend_at = now + request.interval;
    due.push_back(&request);
  }
  return due;
}

std::vector<const OpenRequests::Request*> OpenRequests::OfServer(int server) const {
  std::vector<const Request*> of_server;
  for (const auto& [key, request] : requests_) {
    if (request.server == server && !request.held) of_server.push_back(&request);
  }
  return of_server;
}

std::vector<const OpenRequests::Request*> OpenRequests::Reopen(int server, TimeUs now) {
  for (auto& [key, request] : requests_) {
    if (request.server != server) continue;
    request.held = false;
    request.interval = kFirstInterval;
    request.resend_at = now + kFirstInterval;
  }
  return OfServer(server);
}

TimeUs OpenRequests::NextDue() const {
  TimeUs next = std::numeric_limits<TimeUs>::max();
  for (const auto& [key, request] : requests_) next = std::min(next, request.resend_at);
  return next;
}

std::vector<const OpenRequests::Request*> OpenRequests::OfType(wire::Type type) const {
  std::vector<const Request*> of_type;
  for (auto request = requests_.lower_bound({type, std::numeric_limits<int>::min(), 0, 0});
       request != requests_.end() && request->first.type == type; ++request) {
    of_type.push_back(&request->second);
  }
  return of_type;
}

const OpenRequests::Request* OpenRequests::First(wire::Type type) const {
  for (const Request* request : OfType(type)) {
    if (!request->held) return request;
  }
  return nullptr;
}

}  // namespace kumo
