#include "worker/session/open_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr TimeUs kFirstInterval = 5 * kSecond;
constexpr TimeUs kLastInterval = 40 * kSecond;

}  // namespace

OpenRequests::Key OpenRequests::KeyOf(const wire::Header& asked) {
  int64_t which = asked.carried_array();
  if (asked.type() == wire::PULL) which = asked.vector();
  if (asked.type() == wire::EVALUATED) which = asked.round();
  return {asked.type(), asked.partition(), asked.chunk(), which};
}

const Message& OpenRequests::Add(int server, Message message, TimeUs now) {
  const Key key = KeyOf(message.header);
  message.header.set_request(++newest_);
  Request& request = requests_[key];
  numbers_.erase(request.message.header.request());
  numbers_[newest_] = key;
  request = {server, std::move(message), now + kFirstInterval, kFirstInterval};
  return request.message;
}

const OpenRequests::Request* OpenRequests::Find(int server, const wire::Header& answer) const {
  const auto key = numbers_.find(answer.request());
  if (key == numbers_.end()) return nullptr;
  const Request& request = requests_.at(key->second);
  return request.server == server ? &request : nullptr;
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
  for (auto request = requests_.lower_bound({type, partition, kLeast, 0});
       request != requests_.end() && request->first.type == type &&
       request->first.partition == partition;
       ++request) {
    if (!request->second.held) return true;
  }
  return false;
}

void OpenRequests::Hold(uint64_t number, TimeUs now) {
  Request& request = requests_.at(numbers_.at(number));
  request.held = true;
  request.interval = kLastInterval;
  request.resend_at = now + kLastInterval;
}

void OpenRequests::Drop(uint64_t number) {
  const auto key = numbers_.find(number);
  CHECK(key != numbers_.end());
  requests_.erase(key->second);
  numbers_.erase(key);
}

void OpenRequests::Drop(wire::Type type, int partition) {
  std::erase_if(requests_, [&](const auto& entry) {
    if (entry.first.type != type || entry.first.partition != partition) return false;
    numbers_.erase(entry.second.message.header.request());
    return true;
  });
}

void OpenRequests::Clear() {
  requests_.clear();
  numbers_.clear();
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
