#include "server/node/unconfirmed_contributions.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

size_t BytesOf(const UnconfirmedContributions::Entry& entry) {
  return entry.message.payload.bytes.size() + entry.message.header.SpaceUsedLong() + sizeof entry;
}

}  // namespace

UnconfirmedContributions::Key UnconfirmedContributions::KeyOf(const Entry& entry) {
  const wire::Header& header = entry.message.header;
  return {entry.from,         header.type(),  header.chunk(),
          header.partition(), header.round(), header.carried_array()};
}

void UnconfirmedContributions::Keep(Entry entry) {
  const Key key = KeyOf(entry);
  if (const auto found = waiting_.find(key); found != waiting_.end()) {
    entry.since = std::min(entry.since, found->second.since);
    bytes_[entry.from] -= BytesOf(found->second);
    all_bytes_ -= BytesOf(found->second);
  }
  bytes_[entry.from] += BytesOf(entry);
  all_bytes_ += BytesOf(entry);
  waiting_.insert_or_assign(key, std::move(entry));
  while (all_bytes_ > kMostBytes) MakeRoom();
}

void UnconfirmedContributions::MakeRoom() {
  const auto most = std::ranges::max_element(
      bytes_, [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto first = waiting_.lower_bound({most->first, {}, {}, {}, {}, {}});
  most->second -= BytesOf(first->second);
  all_bytes_ -= BytesOf(first->second);
  if (most->second == 0) bytes_.erase(most);
  waiting_.erase(first);
}

std::vector<UnconfirmedContributions::Entry> UnconfirmedContributions::TakeDue(TimeUs now) {
  std::vector<Entry> due;
  if (empty() || now < tried_at_ + kInterval) return due;
  for (auto& [key, entry] : std::exchange(waiting_, {})) {
    if (now - entry.since <= kPatience) {
      due.push_back(std::move(entry));
      continue;
    }
    const wire::Header& header = entry.message.header;
    LOG_EVERY_T(WARNING, 1) << "drops a " << wire::Type_Name(header.type()) << " of " << entry.from
                            << ": partition " << header.partition() << " of round "
                            << header.round() << " is not leased to it";
  }
  Clear();
  tried_at_ = now;
  return due;
}

void UnconfirmedContributions::Forget(const PeerName& peer) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.from == peer; });
  if (const auto found = bytes_.find(peer); found != bytes_.end()) {
    all_bytes_ -= found->second;
    bytes_.erase(found);
  }
}

void UnconfirmedContributions::Clear() {
  waiting_.clear();
  bytes_.clear();
  all_bytes_ = 0;
}

}  // namespace kumo
