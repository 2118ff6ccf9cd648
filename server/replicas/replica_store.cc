#include "server/replicas/replica_store.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kumo {
namespace {

constexpr TimeUs kSoon = 100 * kMillisecond;
constexpr TimeUs kAskAgain = 2 * kSecond;

void DropSlots(ReplicaStore::Copy* copy) {
  std::erase_if(copy->arrays, [](const auto& array) { return Version::IsSlot(array.first); });
}

Version Unpacked(const ReplicaStore::Copy& copy) {
  std::map<int, FloatArray> arrays;
  for (const auto& [number, payload] : copy.arrays) arrays[number] = CopyFloats(payload.bytes);
  return VersionOf(arrays);
}

}  // namespace

// Arrays of one version come in any order, and may be repeated. A version is complete when all its
// arrays are there; then versions that are no longer needed beside it are dropped. A complete
// version takes no more arrays, so a late copy from an outdated process cannot damage it.
Status ReplicaStore::Add(const Message& message, size_t elements, const JobPlan& plan) {
  const wire::Header& header = message.header;
  constexpr int most = Version::kMostArrays;
  if (header.round() < 0 || header.round() > plan.rounds() || header.version_array() < 0 ||
      header.version_array() >= most || header.arrays() < 1 ||
      header.arrays() > static_cast<uint32_t>(most) ||
      message.payload.bytes.size() != elements * sizeof(float)) {
    return InvalidArgument("replica of chunk " + std::to_string(header.chunk()) + ", version " +
                           std::to_string(header.round()) + ", array " +
                           std::to_string(header.version_array()) + " of " +
                           std::to_string(header.arrays()) + ", with " +
                           std::to_string(message.payload.bytes.size()) + " bytes");
  }
  auto& versions = chunks_[header.chunk()];
  for (const auto& [number, kept] : versions) {
    // A complete version stays as it is.
    if (kept.complete() && (header.round() == number || header.round() < plan.OldestKept(number))) {
      return OkStatus();
    }
  }
  // Once a version is one before the newest, it is sent without the rule's slots: fewer arrays.
  Copy& version = versions[header.round()];
  if (version.expected == 0) version.expected = header.arrays();
  if (header.arrays() < version.expected) {
    version.expected = header.arrays();
    DropSlots(&version);
  }
  if (header.arrays() == version.expected || !Version::IsSlot(header.version_array())) {
    version.arrays[header.version_array()] = message.payload;
  }
  if (header.has_coordinator_state()) version.coordinator_state = header.coordinator_state();
  if (version.complete()) {
    int64_t newest = -1;
    for (const auto& [number, kept] : versions) {
      if (kept.complete()) newest = number;
    }
    const int64_t oldest = plan.OldestKept(newest);
    std::erase_if(versions, [&](const auto& entry) { return entry.first < oldest; });
    // Workers may still pull earlier versions, but the rule continues from the newest: drops slots.
    for (auto& [number, kept] : versions) {
      if (number >= newest || !kept.complete()) continue;
      DropSlots(&kept);
      kept.expected = kept.arrays.size();
    }
  }
  const auto most_versions =
      static_cast<size_t>(plan.MostKept(plan.delay())) + 1;  // one is on its way
  while (versions.size() > most_versions) versions.erase(versions.begin());
  return OkStatus();
}

std::map<int64_t, const ReplicaStore::Copy*> ReplicaStore::Find(int chunk) const {
  std::map<int64_t, const Copy*> complete;
  const auto versions = chunks_.find(chunk);
  if (versions == chunks_.end()) return complete;
  for (const auto& [number, version] : versions->second) {
    if (version.complete()) complete[number] = &version;
  }
  return complete;
}

Result<ReplicaStore::Newest> ReplicaStore::Unpack(int chunk, const JobPlan& plan) const {
  const auto copies = Find(chunk);
  if (copies.empty() || copies.rbegin()->first > plan.rounds()) {
    return DataLoss("no version of chunk " + std::to_string(chunk) + " was kept");
  }
  const int64_t newest = copies.rbegin()->first;
  Newest unpacked{{}, copies.at(newest)->coordinator_state};
  for (int64_t number = plan.OldestKept(newest); number <= newest; ++number) {
    const auto copy = copies.find(number);
    if (copy == copies.end()) {
      // Another chunk may still be at that version, with its round to be computed again. If it is
      // older than the checkpoint that the job began with, going back costs few rounds, and the
      // states that partitions carry are only on the disk.
      return DataLoss("version " + std::to_string(number) + " of chunk " + std::to_string(chunk) +
                      " was not kept");
    }
    unpacked.versions[number] = Unpacked(*copy->second);
  }
  return unpacked;
}

ReplicaFetch::ReplicaFetch(PeerName holder, std::span<const Chunk> chunks, int window)
    : holder_(std::move(holder)), window_(window) {
  for (const Chunk& chunk : chunks) wanted_.push_back({chunk, -1, 0, 0, false});
}

ReplicaFetch::Wanted* ReplicaFetch::Find(int chunk) {
  const auto found =
      std::ranges::lower_bound(wanted_, chunk, {}, [](const Wanted& w) { return w.chunk.index; });
  return found == wanted_.end() || found->chunk.index != chunk ? nullptr : &*found;
}

Status ReplicaFetch::OnMessage(const Message& message, const JobPlan& plan) {
  const wire::Header& header = message.header;
  Wanted* const wanted = Find(header.chunk());
  if (!wanted) {
    return InvalidArgument("chunk " + std::to_string(header.chunk()) + " was not asked for");
  }
  heard_ = heard_since_tick_ = true;
  if (header.type() == wire::REPLICATE) {
    KUMO_RETURN_IF_ERROR(store_.Add(message, wanted->chunk.range.size(), plan));
  } else {
    wanted->newest = header.round();
    wanted->versions = header.versions();
    lost_ |= header.versions() == 0;
  }
  wanted->complete = IsComplete(*wanted);
  while (first_missing_ < wanted_.size() && wanted_[first_missing_].complete) ++first_missing_;
  return OkStatus();
}

bool ReplicaFetch::IsComplete(const Wanted& wanted) const {
  if (wanted.versions == 0) return false;
  const auto versions = store_.Find(wanted.chunk.index);
  return versions.size() >= wanted.versions && versions.rbegin()->first >= wanted.newest;
}

void ReplicaFetch::Tick(StepContext* context) {
  if (std::exchange(heard_since_tick_, false)) heard_at_ = context->now;
  const bool answers = heard_ && context->now < heard_at_ + kAskAgain;
  int missing = 0;
  for (size_t i = first_missing_; i < wanted_.size() && missing < window_; ++i) {
    Wanted& wanted = wanted_[i];
    if (wanted.complete) continue;
    ++missing;
    if (context->now < wanted.ask_at || (answers && wanted.ask_at > 0)) {
      if (!heard_) return;
      continue;
    }
    interval_ = heard_ ? kAskAgain : std::clamp(2 * interval_, kSoon, kAskAgain);
    wanted.ask_at = context->now + interval_;
    SendAction send{holder_, {}};
    send.message.header.set_type(wire::FETCH_REPLICA);
    send.message.header.set_chunk(wanted.chunk.index);
    context->Do(std::move(send));
    if (!heard_) return;
  }
}

}  // namespace kumo
