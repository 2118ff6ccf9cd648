#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/replicas/replica_store.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::Shards;

// A server whose next one is replaced by an empty one at any moment, messages to it are lost and
// come late, and a worker that pulls every version as soon as it is there.
class ServerPair {
 public:
  explicit ServerPair(uint64_t seed)
      : shards_(KeptTwice(), 2), rng_(seed, RngPurpose::kTest), pushed_(Chunks().size()) {
    shards_.Initialise(seed);
    for (const Chunk& chunk : Chunks()) Pull(chunk.index, 0);
    Collect();
  }

  bool done() const {
    for (const Chunk& chunk : Chunks()) {
      if (Seen(chunk.index) < shards_.job().plan().rounds()) return false;
    }
    return true;
  }

  void Step() {
    switch (rng_.NextBelow(40)) {
      case 0:
        stores_[0].Clear();
        on_the_way_[0].clear();
        shards_.ReplaceHolder(0);
        break;
      case 1:
        now_ += 5 * kSecond;
        shards_.Tick(now_);
        break;
      case 2:
      case 3:
      case 4:
        shards_.Compute(&rng_);
        break;
      default:
        if (rng_.NextBelow(3) == 0) {
          Push();
        } else {
          Deliver(static_cast<int>(rng_.NextBelow(2)));
        }
    }
    Collect();
  }

  // Whatever the next server would give back is at least what somebody has seen.
  void ExpectNothingOlderThanSeen() const {
    for (const Chunk& chunk : Chunks()) {
      const auto kept = stores_[chunk.server].Find(chunk.index);
      // And the version before, where the holder is still the first one.
      if (chunk.server > 0 && Seen(chunk.index) > 0) {
        EXPECT_EQ(kept.size(), 2u) << chunk.index;
      }
      if (!kept.empty()) {
        EXPECT_GE(kept.rbegin()->first, Seen(chunk.index)) << chunk.index;
      }
    }
  }

 private:
  static Job KeptTwice() {
    Job job = test::NesterovJob();
    job.experiment.cluster.replicas = 2;
    return job;
  }
  const std::vector<Chunk>& Chunks() const { return shards_.map().chunks(); }
  int64_t Seen(int chunk) const {
    const auto seen = seen_.find(chunk);
    return seen == seen_.end() ? -1 : seen->second;
  }
  void Pull(int chunk, int64_t version) {
    ASSERT_TRUE(shards_.Send(test::PullMessage(chunk, version)).ok());
  }
  // The next contribution to a chunk's open round.
  void Push() {
    const Chunk& chunk = Chunks()[rng_.NextBelow(Chunks().size())];
    const int64_t round = Seen(chunk.index);
    auto& [pushed_round, partition] = pushed_[chunk.index];
    if (std::exchange(pushed_round, round) != round) partition = 0;
    if (partition == 3 || round == shards_.job().plan().rounds()) return;
    ASSERT_TRUE(shards_.Send(test::PushMessage(shards_.job(), chunk, round, partition++)).ok());
  }
  // One of the messages to the next server arrives, is lost, or is answered in vain.
  void Deliver(int server) {
    std::vector<Message>& waiting = on_the_way_[server];
    if (waiting.empty()) return;
    const size_t i = rng_.NextBelow(waiting.size());
    const Message message = waiting[i];
    waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
    if (rng_.NextBelow(10) == 0) return;
    const Range range = Chunks()[message.header.chunk()].range;
    ASSERT_TRUE(stores_[server].Add(message, range.size(), shards_.job().plan()).ok());
    if (rng_.NextBelow(10) > 0) shards_.Acknowledge(server, message.header);
  }
  void Collect() {
    while (!shards_.sent.empty()) {
      for (SendAction& send : std::exchange(shards_.sent, {})) {
        const wire::Header& header = send.message.header;
        if (header.type() == wire::REPLICATE) {
          on_the_way_[Chunks()[header.chunk()].server].push_back(send.message);
        } else if (header.type() == wire::CHUNK) {
          seen_[header.chunk()] = header.round();
          if (header.round() < shards_.job().plan().rounds()) {
            Pull(header.chunk(), header.round() + 1);
          }
        }
      }
    }
  }

  Shards shards_;
  Rng rng_;
  TimeUs now_ = 0;
  ReplicaStore stores_[2];                       // by the server whose chunks they hold
  std::vector<Message> on_the_way_[2];           // likewise
  std::map<int, int64_t> seen_;                  // chunk -> version
  std::vector<std::pair<int64_t, int>> pushed_;  // by chunk: round, partitions
};

TEST(ShardReplication, WhateverIsKeptIsNeverOlderThanWhatAnybodyHasSeen) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    ServerPair neighbours(seed);
    int steps = 0;
    for (; steps < 100'000 && !neighbours.done(); ++steps) {
      neighbours.Step();
      neighbours.ExpectNothingOlderThanSeen();
      ASSERT_FALSE(HasFailure());
    }
    ASSERT_TRUE(neighbours.done());
  }
}

}  // namespace
}  // namespace kumo
