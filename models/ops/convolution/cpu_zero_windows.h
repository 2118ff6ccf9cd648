// Zero windows: sets the result of a 3x3 convolution to the bias if its window is all zeros. A
// plain sum with finite weights gives that by itself; minimal filtering leaves a rounding error of
// the neighbours, and an l2_normalisation that follows multiplies the gradient of such a number by
// up to 1e5. Padding and the canvas around a picture have such windows.
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
  void SetToBias(int batch, const float* source, const float* bias, float* result);

 private:
  // Marks with 1 the positions at which the source is zero in all channels. Returns whether there
  // is one.
  bool Mark(const float* source, int64_t floats);
  // Marks the windows of a row of results in the same way.
  bool MarkRow(int64_t row, int64_t lanes, uint8_t* windows) const;

  Engine& engine_;
  Shape result_;
  Shape source_;
  int pad_;
  // Pointers into the scratch while SetToBias runs.
  uint8_t* marks_ = nullptr;  // [position of the source][lane]
  // 1 for a lane without a sample, whose numbers are not read; all lanes, several times.
  std::vector<uint32_t> unused_;
};

}  // namespace kumo::cpu
