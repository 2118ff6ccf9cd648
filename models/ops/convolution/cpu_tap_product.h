// Product of weights and positions that a convolution's forward pass and its gradient with respect
// to the input have in common: each result position is a sum over source channels and over the taps
// of the kernel whose source position exists. Forward, result and source are output and input;
// backward they change places, and so do the two channel axes of the weights.
//
// Neighbouring positions that use the same taps form a run, which is computed once; padding, stride
// and dilation only decide which runs there are. Result rows whose taps are the same, of source
// rows further down, share their runs: otherwise the tables of a strided convolution would be
// larger than its activations. Used by one op; not thread-safe, but spreads its own work over the
// engine's threads.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "models/backend/cpu/cpu_engine.h"
#include "models/ops/convolution/cpu_kernel.h"

namespace kumo::cpu {

// Which taps reach which source position, along one axis.
struct Tap {
  int kernel;      // place in the kernel
  int64_t source;  // place in the source
};
using AxisTaps = std::vector<std::vector<Tap>>;  // by result position

AxisTaps ForwardTaps(int64_t input, int64_t output, int kernel, int stride, int pad, int dilation);
AxisTaps BackwardTaps(int64_t input, int64_t output, int kernel, int stride, int pad, int dilation);

class TapProduct {
 public:
  struct Geometry {
    Shape result;
    Shape source;
    int kernel_height;
    int kernel_width;
    AxisTaps rows;
    AxisTaps columns;
  };
  TapProduct(CpuEngine& engine, const Geometry& geometry);

  // Takes over the weights: weights[result * result_stride + source * source_stride + tap].
  void Pack(const float* weights, int64_t result_stride, int64_t source_stride);

  // Blocks of result channels: each is one unit of work.
  const std::vector<Range>& blocks() const { return blocks_; }
  // Result rows `rows` of block `block` to result[channel of the block][row][column][lane], with
  // result_channel floats between channels; `result` points to the first row of the block's first
  // channel. bias: one per result channel, or null. Prepare(lanes) comes first.
  void RunRows(int64_t block, Range rows, const float* source, const float* bias, float* result,
               int64_t result_channel) const;
  void Prepare(int64_t lanes);
  // Everything, on all threads.
  void Run(int64_t lanes, const float* source, const float* bias, float* result);

  int64_t bytes() const;

 private:
  struct RunOfPositions {
    int64_t column;  // first
    int count;
    int64_t first_tap;
    int taps;
    int64_t source_step;  // in positions
  };
  // The runs of a result row.
  struct RowRuns {
    Range runs;
    int64_t source = 0;  // position that is added to those of the taps
  };
  // Places of the taps of all runs.
  struct TapPlaces {
    std::vector<int64_t> positions;  // in the source
    std::vector<int64_t> kernel;
  };
  void AddRuns(int64_t row, TapPlaces* places);
  DeviceArray<int64_t> OnDevice(const std::vector<int64_t>& numbers) const;

  CpuEngine& engine_;
  const ConvolutionKernels& kernels_;
  Geometry geometry_;
  std::vector<Range> blocks_;
  std::vector<int64_t> block_weights_;  // where a block's packed weights start
  DeviceArray<float> packed_;           // per block: [source channel][tap][channel of the block]
  std::vector<RunOfPositions> runs_;
  std::vector<RowRuns> row_runs_;      // by result row
  DeviceArray<int64_t> tap_position_;  // source position of each run's taps
  int64_t lanes_ = 0;
  DeviceArray<int64_t> tap_source_;                // tap_position_ * lanes_
  std::vector<DeviceArray<int64_t>> tap_weights_;  // place in the kernel * rows, by rows of a block
};

}  // namespace kumo::cpu
