// Relocation: moves a checkpoint's arrays to their positions in a network with the same tensors,
// whose layers may have other factors of their steps. Factors order the tensors in the flat vector
// (parameter_layout.h).
//
// A tensor that is frozen from now on keeps the evaluated weights, and no other state. A tensor
// that was frozen gets zeros for what the partitions carry, since it has lost nothing.
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// The same tensors with factors of 1: equal for networks whose trained weights mean the same.
ParameterLayout WithoutFactors(const ParameterLayout& layout);

class Relocation {
 public:
  // FailedPrecondition with the first difference if the checkpoint has other tensors; the errors of
  // LayoutOf.
  static Result<Relocation> Make(const checkpoint::Manifest& manifest,
                                 const ParameterLayout& layout);

  // The range of the checkpoint's positions that holds the numbers of `wanted`, and maybe others:
  // if `wanted` has a tensor that was frozen, also a number that was trained, whose arrays show
  // what the partitions carry.
  Range Stored(Range wanted) const;
  // Moves the arrays of Stored(wanted) to their positions in the layout, and cuts them to `wanted`.
  // They share their numbers with the arrays before.
  void Move(Range wanted, ShardSnapshot* snapshot) const;

 private:
  struct Tensor {
    Range stored;
    int64_t begin = 0;  // in the layout
    bool was_trained = false;
    bool frozen = false;
    bool unfrozen = false;  // it is trained, and was not

    Range now() const { return {begin, begin + stored.size()}; }
  };

  // `stored`, extended to the nearest number that was trained.
  Range WithTrained(Range stored) const;
  // Adds zeros of the partitions' arrays for the tensors in `wanted` that were frozen.
  void AddZeros(Range wanted, const ShardSnapshot& snapshot, std::vector<StateArray>* moved) const;

  std::vector<Tensor> tensors_;  // by stored position; empty: the layouts are equal
};

}  // namespace kumo
