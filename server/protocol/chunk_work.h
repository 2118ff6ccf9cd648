// Chunk work: the arithmetic of one chunk, detached from the protocol so that any thread may run
// it.
//
// A work either adds some contributions to the chunk's running sum, or adds the last ones, applies
// the update rule and makes the next version. If contributions are applied on arrival, each work
// applies one, and the last one of a round makes the version. A shard has at most one work per
// chunk under way; the work owns or shares every array that it touches, so no lock is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/buffer.h"
#include "common/codec/codec.h"
#include "server/protocol/version.h"
#include "server/rules/aggregate.h"
#include "server/rules/rule.h"

namespace kumo {

// Numbers, encoded for pulls.
struct CodedNumbers {
  CodedBytes bytes;
  int64_t first_bad = -1;  // index of the first element that the codec cannot hold; -1: none
};
CodedNumbers EncodeForPulls(const Codec& codec, EncodeContext context,
                            const Buffer<float>& numbers);

struct ChunkWork {
  uint32_t generation = 0;  // of the shard that asked for it
  int chunk = 0;
  int64_t round = 0;
  size_t elements = 0;                           // of the chunk
  std::vector<CodedContribution> contributions;  // in partition order
  FloatArray sum;                        // running sum; null: `contributions` are all of the round
  bool sum_holds_contributions = false;  // `sum` has contributions of this round already

  // For a work that applies the rule; null or empty in other works.
  std::shared_ptr<const Rule> rule;
  RoundInfo info;
  Version current;                    // that the round started from, until Run(); none if `next`
                                      // is complete
  Version next;                       // to be written; the rule's slots are updated in place
  bool relays = false;                // pulls of the next version get `contributions`, all of them
  const Codec* pull_codec = nullptr;  // encodes the next version for pulls; null: float32
  EncodeContext pull_context;
  bool stream = false;     // write the next arrays past the caches
  bool ends_round = true;  // a work that applies the rule also closes the round
  bool freeze = false;     // the next version goes into a checkpoint or to another server

  // Results of Run(), beside the elements of `next`.
  int64_t first_bad = -1;  // as in CodedNumbers
  Version frozen;          // a frozen copy of `next`, if `freeze`

  bool applies() const { return rule != nullptr; }
  bool closes() const { return applies() && ends_round; }
  void Run();

 private:
  void MakeNext();
  void EncodeNext();
  CodedBytes JoinedContributions() const;
};

}  // namespace kumo
