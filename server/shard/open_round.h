// The contributions to a chunk's open round, one per partition, and who has brought them.
//
// They are added in partition order, however they arrive; an early one waits, still coded. Early
// ones are added to a running sum only when several are there: most rounds then are one pass over
// memory, and what waits stays bounded.
//
// Owned by a ShardChunk; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/transport/message.h"
#include "server/protocol/arrays.h"
#include "server/shard/chunk_work.h"

namespace kumo {

class OpenRound {
 public:
  explicit OpenRound(int partitions) : arrived_(partitions) {}

  // Whether a partition has contributed.
  bool Has(int partition) const { return partition < added_ || arrived_[partition].has_value(); }
  // Requires that it has not.
  void Add(int partition, CodedContribution contribution);
  // A checkpoint is taken of the version that the round makes.
  void Save() { save_ = true; }
  bool saves() const { return save_; }
  // A peer keeps a partition's contribution, its request of this number, until the round has
  // closed.
  void Keeps(int partition, const PeerName& peer, uint64_t request) {
    keepers_[{partition, peer}] = request;
  }

  // Contributions are there that are next to be added, and worth a pass.
  bool ready() const { return Ready() > 0; }
  // Moves them into `work`, whose length is known, with the running sum. Requires ready(), and that
  // the work before has run.
  void MoveInto(ChunkWork* work);
  // All contributions are in the sum, or in the work under way.
  bool closing() const { return added_ == partitions(); }
  // Partitions that have not contributed.
  std::vector<int> Missing() const;

  // Who keeps what they sent, by partition, and their requests' numbers.
  using Keepers = std::map<std::pair<int, PeerName>, uint64_t>;
  // The next round begins. Returns who has kept what they sent to the one that is over.
  Keepers Close();

 private:
  int Ready() const;
  int partitions() const { return static_cast<int>(arrived_.size()); }

  std::vector<std::optional<CodedContribution>> arrived_;  // by partition
  int added_ = 0;   // partitions whose contributions are in the sum or in the work under way
  FloatArray sum_;  // null: never needed so far
  bool save_ = false;
  Keepers keepers_;
};

}  // namespace kumo
