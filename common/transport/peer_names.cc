#include "common/transport/peer_names.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace kumo {
namespace {

constexpr std::string_view kHexadecimal = "0123456789abcdef";
// Who wants a name repeats what it says sooner than this.
constexpr TimeUs kLongestPause = 2 * kSecond;

}  // namespace

std::string RoutingId(const PeerName& name, uint64_t token) {
  std::array<char, kTokenDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, token);
  return name + "#" + digits.data();
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
  // A pause is ours, or that of one that wants the name no more: neither is the holder's.
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

}  // namespace kumo
