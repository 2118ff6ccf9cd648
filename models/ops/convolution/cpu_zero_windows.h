// Where a kernel sees nothing but zeros, its result is the bias. A plain sum gives that by itself;
// minimal filtering leaves a rounding error of the neighbours there, which is harmless until
// something divides by the length of such results: l2_normalisation multiplies the gradient of what
// ought to be 0 by up to 1e5. Padding and the canvas around a picture are such places.
#pragma once

#include <cstdint>
#include <vector>

#include "models/backend/cpu/engine.h"

namespace kumo::cpu {

// For 3x3 kernels with stride 1. Used by one op, outside of the passes that use the scratch.
class ZeroWindows {
 public:
  // pad: zeros around the source. max_batch: the largest minibatch.
  ZeroWindows(Engine& engine, const Shape& result, const Shape& source, int pad, int max_batch);

  // Sets each result whose window of the source is zero in all channels to its channel's bias.
  // bias: one per result channel, or null, which is 0.
  void Settle(int batch, const float* source, const float* bias, float* result);

 private:
  // Marks with 1 where the source is zero in all channels. Whether it is so anywhere.
  bool Mark(const float* source, int64_t floats);
  // The same for the windows of a row of results.
  bool MarkRow(int64_t row, int64_t lanes, uint8_t* windows) const;

  Engine& engine_;
  Shape result_;
  Shape source_;
  int pad_;
  // Pointers into the scratch while Settle runs.
  uint8_t* marks_ = nullptr;  // [position of the source][lane]
  // For each lane, more than once, 1 if it has no sample: what it holds is not looked at.
  std::vector<uint32_t> unused_;
};

}  // namespace kumo::cpu
