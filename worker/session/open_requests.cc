#include "worker/session/open_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <glog/logging.h>

#include "common/job/buggify.h"

namespace kumo {
namespace {

constexpr TimeUs kFirstInterval = 5 * kSecond;
constexpr TimeUs kLastInterval = 40 * kSecond;

// Kinds of requests by the time of their answer: on arrival; when a version is made; when another
// worker has handed a state over.
enum Kind { kAtOnce, kVersions, kStates };

Kind KindOf(wire::Type type) {
  if (type == wire::PULL) return kVersions;
  if (type == wire::GET_STATE) return kStates;
  return kAtOnce;
}

}  // namespace

OpenRequests::Key OpenRequests::KeyOf(const wire::Header& asked) const {
  int64_t which = asked.carried_array();
  if (asked.type() == wire::PUSH) which = asked.round() % open_rounds_;
  if (asked.type() == wire::PULL) which = asked.vector();
  if (asked.type() == wire::EVALUATED) which = asked.round();
  return {asked.type(), asked.partition(), asked.chunk(), which};
}

// --- Sending.

OpenRequests::Flow& OpenRequests::FlowOf(const OpenRequest& request) {
  return servers_[request.server].flows[KindOf(request.message.header.type())];
}

void OpenRequests::Enqueue(OpenRequest* request) {
  request->held = false;
  request->interval = 0;
  FlowOf(*request).waiting.insert(request->message.header.request());
}

void OpenRequests::Withdraw(const OpenRequest& request) {
  const uint64_t number = request.message.header.request();
  if (request.interval == 0) {
    FlowOf(request).waiting.erase(number);
    return;
  }
  timers_.erase({request.resend_at, number});
  if (!request.held) --FlowOf(request).on_their_way;
}

void OpenRequests::Schedule(OpenRequest* request, TimeUs at, TimeUs interval) {
  const uint64_t number = request->message.header.request();
  timers_.erase({request->resend_at, number});
  request->interval = interval;
  request->resend_at = at;
  timers_.emplace(at, number);
}

uint64_t OpenRequests::Add(int server, Message message) {
  const Key key = KeyOf(message.header);
  message.header.set_request(++newest_);
  if (const auto former = requests_.find(key); former != requests_.end()) {
    Drop(former->second.message.header.request());
  }
  numbers_[newest_] = key;
  Enqueue(&(requests_[key] = {.server = server, .message = std::move(message)}));
  return newest_;
}

std::vector<const OpenRequest*> OpenRequests::Send(TimeUs now) {
  std::vector<const OpenRequest*> sent;
  for (auto& [index, server] : servers_) {
    for (Flow& flow : server.flows) {
      while (!flow.waiting.empty() && flow.on_their_way < window_) {
        if (flow.on_their_way > 0 && Buggify(RareWay::kRequestWindowFull)) break;
        OpenRequest& request = At(*flow.waiting.begin());
        flow.waiting.erase(flow.waiting.begin());
        ++flow.on_their_way;
        const bool late = Buggify(RareWay::kRequestRepeatedLate);
        const TimeUs interval = late ? kLastInterval : kFirstInterval;
        const bool at_once = Buggify(RareWay::kRequestRepeatedAtOnce);
        Schedule(&request, at_once ? now : now + interval, interval);
        sent.push_back(&request);
      }
    }
  }
  // Oldest first.
  std::ranges::sort(sent, {}, [](const OpenRequest* r) { return r->message.header.request(); });
  return sent;
}

// --- Answers.

const OpenRequest* OpenRequests::Find(int server, const wire::Header& answer) const {
  const auto key = numbers_.find(answer.request());
  if (key == numbers_.end()) return nullptr;
  const OpenRequest& request = requests_.at(key->second);
  return request.server == server ? &request : nullptr;
}

void OpenRequests::Hold(uint64_t number, TimeUs now) {
  OpenRequest& request = At(number);
  // A held request is repeated and answered again and again; only its first answer shows progress.
  if (!request.held) servers_[request.server].answered_at = now;
  Withdraw(request);
  request.held = true;
  Schedule(&request, now + kLastInterval, kLastInterval);
}

void OpenRequests::Answered(uint64_t number, TimeUs now) {
  servers_[At(number).server].answered_at = now;
  Drop(number);
}

void OpenRequests::Drop(uint64_t number) {
  const auto key = numbers_.find(number);
  CHECK(key != numbers_.end());
  const auto request = requests_.find(key->second);
  Withdraw(request->second);
  requests_.erase(request);
  numbers_.erase(key);
}

void OpenRequests::Drop(wire::Type type, int partition) {
  for (const OpenRequest* request : OfType(type)) {
    const wire::Header& asked = request->message.header;
    if (asked.partition() == partition) Drop(asked.request());
  }
}

void OpenRequests::Clear() {
  requests_.clear();
  numbers_.clear();
  servers_.clear();
  timers_.clear();
}

// --- Retries.

std::vector<const OpenRequest*> OpenRequests::Due(TimeUs now) {
  std::vector<const OpenRequest*> due;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    OpenRequest& request = At(timers_.begin()->second);
    // A server that answers other requests will come to this one. Scenario: on a slow network the
    // answers to a large model's pulls take longer than the interval; a retry would double that
    // traffic.
    const TimeUs after_answer = servers_[request.server].answered_at + request.interval;
    if (after_answer > now && !request.held) {
      Schedule(&request, after_answer, request.interval);
      continue;
    }
    const TimeUs interval = std::min(2 * request.interval, kLastInterval);
    Schedule(&request, now + interval, interval);
    due.push_back(&request);
  }
  return due;
}

void OpenRequests::SendAgain(int server) {
  for (auto& [key, request] : requests_) {
    if (request.server != server || request.held) continue;
    Withdraw(request);
    Enqueue(&request);
  }
}

void OpenRequests::Reopen(int server) {
  for (auto& [key, request] : requests_) {
    if (request.server != server) continue;
    Withdraw(request);
    Enqueue(&request);
  }
}

TimeUs OpenRequests::NextDue() const {
  return timers_.empty() ? std::numeric_limits<TimeUs>::max() : timers_.begin()->first;
}

// --- Queries.

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

std::vector<const OpenRequest*> OpenRequests::OfType(wire::Type type) const {
  std::vector<const OpenRequest*> of_type;
  for (auto request = requests_.lower_bound({type, std::numeric_limits<int>::min(), 0, 0});
       request != requests_.end() && request->first.type == type; ++request) {
    of_type.push_back(&request->second);
  }
  return of_type;
}

const OpenRequest* OpenRequests::First(wire::Type type) const {
  for (const OpenRequest* request : OfType(type)) {
    if (!request->held) return request;
  }
  return nullptr;
}

}  // namespace kumo
