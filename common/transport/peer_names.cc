#include "common/transport/peer_names.h"

#include <algorithm>

#include <glog/logging.h>

#include "common/base/text.h"

namespace kumo {

namespace {

constexpr std::string_view kHexadecimal = "0123456789abcdef";
// A process that wants a name repeats its messages more often than this.
constexpr TimeUs kLongestPause = 2 * kSecond;

}  // namespace

std::string RoutingId(const PeerName& name, uint64_t token) {
  return name + "#" + HexDigits(token);
}

std::optional<PeerName> NameIn(std::string_view routing_id) {
  if (routing_id.size() <= kTokenDigits + 1) return std::nullopt;
  const std::string_view name = routing_id.substr(0, routing_id.size() - kTokenDigits - 1);
  const std::string_view token = routing_id.substr(name.size() + 1);
  const bool visible = std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
  if (!visible || routing_id[name.size()] != '#' ||
      token.find_first_not_of(kHexadecimal) != std::string_view::npos) {
    return std::nullopt;
  }
  return PeerName(name);
}

std::string_view PeerNames::Exclusive(const PeerName& name) const {
  const std::string_view all = name;
  if (!one_worker_per_name_ || !all.starts_with("worker/")) return all;
  return all.substr(0, all.rfind('/'));
}

bool PeerNames::Hear(const std::string& routing_id, const PeerName& name, TimeUs now) {
  const std::string exclusive(Exclusive(name));
  if (!places_.contains(exclusive)) MakeRoom();
  Place& place = places_[exclusive];
  if (place.holder.empty()) Replace(routing_id, name, now);
  if (place.holder == routing_id) {
    place.heard = now;
    return true;
  }
  // Such a pause is this process's own, or the other process has given up: the holder is not to
  // blame.
  const bool paused = now - place.other_heard > std::max(silent_us_, kLongestPause);
  if (place.other.empty() || paused) {
    place.other = routing_id;
    place.wanted_at = now;
    place.question = ++questions_;
  }
  if (place.other != routing_id) return false;
  place.other_heard = now;
  if (now - place.wanted_at <= silent_us_) return false;
  Replace(routing_id, name, now);
  return true;
}

std::optional<PeerNames::Question> PeerNames::Ask(const std::string& routing_id,
                                                  const PeerName& name, TimeUs now) {
  Place& place = places_[std::string(Exclusive(name))];
  if (place.other != routing_id || now < place.ask_at) return std::nullopt;
  place.ask_at = now + kAskAgain;
  return Question{place.holder, place.question};
}

void PeerNames::Replace(const std::string& routing_id, const PeerName& name, TimeUs now) {
  Place& place = places_[std::string(Exclusive(name))];
  place = Place();
  place.holder = routing_id;
  place.name = name;
  place.heard = now;
}

std::optional<std::string> PeerNames::Answer(const std::string& routing_id, const PeerName& name,
                                             uint64_t number) {
  const auto found = places_.find(std::string(Exclusive(name)));
  if (found == places_.end()) return std::nullopt;
  Place& place = found->second;
  if (place.holder != routing_id || place.other.empty() || place.question != number) {
    return std::nullopt;
  }
  std::string refused;
  refused.swap(place.other);
  return refused;
}

const std::string* PeerNames::Find(const PeerName& name) const {
  const auto found = places_.find(std::string(Exclusive(name)));
  const bool known = found != places_.end() && found->second.name == name;
  return known ? &found->second.holder : nullptr;
}

void PeerNames::MakeRoom() {
  if (places_.size() < kMostNames) return;
  places_.erase(std::ranges::min_element(
      places_, [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; }));
}

namespace {

Status NameIsTaken(const PeerName& name) {
  return FailedPrecondition("another process uses the name " + name +
                            "; it is free once that process has ended or is silent");
}

}  // namespace

Status NameDisputes::Hear(const std::string& routing_id, const PeerName& name, TimeUs now) {
  if (names_.Hear(routing_id, name, now)) return OkStatus();
  const auto question = names_.Ask(routing_id, name, now);
  if (!question) return NameIsTaken(name);
  wire::Header ping;
  ping.set_type(wire::PING);
  ping.set_request(question->number);
  if (send_(question->to, std::move(ping))) return NameIsTaken(name);
  names_.Replace(routing_id, name, now);
  return OkStatus();
}

void NameDisputes::OnPong(const std::string& routing_id, const PeerName& name, uint64_t number) {
  const auto other = names_.Answer(routing_id, name, number);
  if (!other) return;
  LOG_EVERY_T(WARNING, 1) << "refused another process with the name " << name
                          << ": the first one is alive";
  wire::Header refused;
  refused.set_type(wire::REFUSED);
  const Status taken = NameIsTaken(name);
  refused.mutable_refusal()->set_code(static_cast<uint32_t>(taken.code()));
  refused.mutable_refusal()->set_reason(taken.message());
  (void)send_(*other, std::move(refused));
}

}  // namespace kumo
