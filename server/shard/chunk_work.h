// The arithmetic of one chunk, cut loose from the protocol so that any thread may run it.
//
// A shard has at most one ChunkWork per chunk under way; the work owns or shares every array that
// it touches, so no lock is needed. It either adds some contributions to the chunk's running sum,
// or adds the last ones, applies the update rule and makes the next version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/buffer.h"
#include "common/codec/codec.h"
#include "server/protocol/arrays.h"
#include "server/protocol/version.h"
#include "server/rules/aggregate.h"
#include "server/rules/rule.h"

namespace kumo {

// A version's start as the readers get it.
struct CodedStart {
  CodedBytes bytes;
  int64_t first_bad = -1;  // where a number stands that the codec cannot hold; -1: nowhere
};
CodedStart EncodeStart(const Codec& codec, const Buffer<float>& start);

struct ChunkWork {
  uint32_t generation = 0;  // of the shard that asked for it
  int chunk = 0;
  int64_t round = 0;
  size_t numbers = 0;                            // length of the chunk
  std::vector<CodedContribution> contributions;  // in partition order
  FloatArray sum;                                // running sum; null: these are all there are
  bool sum_holds_numbers = false;  // contributions of this round were added to `sum` before

  // What the work that closes the round needs; null in other works.
  std::shared_ptr<const Rule> rule;
  RoundInfo info;
  Version current;                    // what the round started from
  Version next;                       // to be written; the rule's slots are updated where they are
  const Codec* pull_codec = nullptr;  // codes the next start for the readers; null: float32
  bool stream = false;                // write the next arrays past the caches
  bool freeze = false;  // the next version goes into a checkpoint or to another server

  // What Run() makes, beside the numbers of `next`.
  int64_t first_bad = -1;  // as CodedStart's
  Version frozen;          // of `next`, where that is asked for

  bool closes() const { return rule != nullptr; }
  void Run();
};

}  // namespace kumo
