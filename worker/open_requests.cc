#include "worker/open_requests.h"

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

bool OpenRequests::Waits(wire::Type type, int partition) const {
  const auto first = requests_.lower_bound(
      {type, partition, std::numeric_limits<int>::min(), std::numeric_limits<int>::min()});
  return first != requests_.end() && first->first.type == type &&
         first->first.partition == partition;
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
    if (request.server == server) of_server.push_back(&request);
  }
  return of_server;
}

TimeUs OpenRequests::NextDue() const {
  TimeUs next = std::numeric_limits<TimeUs>::max();
  for (const auto& [key, request] : requests_) next = std::min(next, request.resend_at);
  return next;
}

const OpenRequests::Request* OpenRequests::First(wire::Type type) const {
  const auto first = requests_.lower_bound({type, std::numeric_limits<int>::min(), 0, 0});
  return first != requests_.end() && first->first.type == type ? &first->second : nullptr;
}

}  // namespace kumo
