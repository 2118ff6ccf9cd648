#include "server/node/early_contributions.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

size_t BytesOf(const EarlyContributions::Early& early) {
  return early.message.payload.bytes.size() + early.message.header.SpaceUsedLong() + sizeof early;
}

}  // namespace

EarlyContributions::Key EarlyContributions::KeyOf(const Early& early) {
  const wire::Header& header = early.message.header;
  return {early.from,         header.type(),  header.chunk(),
          header.partition(), header.round(), header.carried_array()};
}

void EarlyContributions::Keep(Early early) {
  const Key key = KeyOf(early);
  if (const auto found = waiting_.find(key); found != waiting_.end()) {
    early.since = std::min(early.since, found->second.since);
    bytes_[early.from] -= BytesOf(found->second);
    all_bytes_ -= BytesOf(found->second);
  }
  bytes_[early.from] += BytesOf(early);
  all_bytes_ += BytesOf(early);
  waiting_.insert_or_assign(key, std::move(early));
  while (all_bytes_ > kMostBytes) MakeRoom();
}

void EarlyContributions::MakeRoom() {
  const auto most = std::ranges::max_element(
      bytes_, [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto first = waiting_.lower_bound({most->first, {}, {}, {}, {}, {}});
  most->second -= BytesOf(first->second);
  all_bytes_ -= BytesOf(first->second);
  if (most->second == 0) bytes_.erase(most);
  waiting_.erase(first);
}

std::vector<EarlyContributions::Early> EarlyContributions::TakeDue(TimeUs now) {
  std::vector<Early> due;
  if (empty() || now < tried_at_ + kInterval) return due;
  for (auto& [key, early] : std::exchange(waiting_, {})) {
    if (now - early.since <= kPatience) {
      due.push_back(std::move(early));
      continue;
    }
    const wire::Header& header = early.message.header;
    LOG_EVERY_T(WARNING, 1) << "drops a " << wire::Type_Name(header.type()) << " of " << early.from
                            << ": partition " << header.partition() << " of round "
                            << header.round() << " is not leased to it";
  }
  Clear();
  tried_at_ = now;
  return due;
}

void EarlyContributions::Forget(const PeerName& peer) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.from == peer; });
  if (const auto found = bytes_.find(peer); found != bytes_.end()) {
    all_bytes_ -= found->second;
    bytes_.erase(found);
  }
}

void EarlyContributions::Clear() {
  waiting_.clear();
  bytes_.clear();
  all_bytes_ = 0;
}

}  // namespace kumo
