// Passes of Winograd's minimal filtering for convolutions of 3x3 kernels with stride 1: a tile of
// 4x4 results takes 36 products for each channel instead of 144. A tile's patch of 6x6 sources is
// transformed to 36 numbers, its frequencies; at each frequency a product of matrices mixes the
// channels; the products are transformed back. Samples are in the vector lanes, so that a transform
// is a few additions of vectors (cpu_winograd_kernel.cc has the formulas). The rounding error is
// larger than that of a plain sum: tests/models/ops/convolution/ways_test.cc has its bound.
//
// Columns are the lanes of tiles, which are numbered row by row of the plane. For few samples a
// tile's columns are 4 or 8 lanes: the transforms, a small part, still work on whole vectors, the
// products do not. A block of columns passes through all steps at once, so that it stays in the
// caches. Each of its 36 matrices is [strip of columns][channel][column of the strip].
//
// Used by one op; not thread-safe, but the passes spread their own work over the engine's threads.
// Their temporary arrays are in the engine's scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/backend/cpu/cpu_engine.h"
#include "models/ops/convolution/cpu_winograd_kernel.h"

namespace kumo::cpu {

// A plane in tiles of 4x4 positions; the first begins at `offset`, along both axes.
struct TiledPlane {
  Shape shape;
  int64_t offset = 0;
};

// The columns of `rows` x `columns` tiles, in blocks.
class TileColumns {
 public:
  static constexpr int kFrequencies = 36;

  TileColumns(const CpuEngine& engine, const Shape& tiled, int64_t block);

  // Blocks of columns, each a multiple of 16: behind the last tile's there may be some of no tile.
  std::vector<Range> Blocks(int batch) const;
  int64_t strip_floats() const { return kernels_.strip_floats; }
  // Floats from a strip to the next, and from a block's matrix of one frequency to the next
  // frequency's: a little more than their lengths, so that the numbers of a column, or of a row, do
  // not fight for the same place of a cache.
  int64_t strip_stride(int64_t channels) const;
  int64_t matrix_floats(int64_t channels) const;
  // Lanes of each tile that are columns.
  int64_t Taken(int batch) const { return std::min(engine_.Lanes(batch), FewLanes(batch)); }
  // Calls body(tile) for the lanes of each tile of a block, or for all tiles of a row, if there is
  // one lane. body must not depend on their order.
  template <typename Body>
  void ForEachTile(const Range& block, int batch, const TiledPlane& plane, const Body& body) const {
    const int64_t taken = Taken(batch);
    const int64_t end = std::min(block.end, rows_ * columns_ * taken);
    WinogradTile tile{};
    tile.lanes = engine_.Lanes(batch);
    tile.height = plane.shape.height();
    tile.width = plane.shape.width();
    tile.frequency = matrix_floats(plane.shape.channels());
    tile.strip = strip_stride(plane.shape.channels());
    for (int64_t at = block.begin; at < end; at += tile.count * tile.tiles) {
      const int64_t number = at / taken;
      tile.row = number / columns_ * kTile + plane.offset;
      tile.column = number % columns_ * kTile + plane.offset;
      tile.first = at % taken;
      tile.count = std::min(taken - tile.first, end - at);
      tile.at = at - block.begin;
      tile.tiles = 1;
      if (tile.lanes == 1) {
        tile.tiles = std::min(
            {columns_ - number % columns_, end - at, strip_floats() - tile.at % strip_floats()});
      }
      body(tile);
    }
  }
  // Zeros in one channel of a block's matrices, which begins at `to`, for the columns of no tile.
  void ClearRest(const Range& block, int batch, int64_t channels, float* to) const;

 private:
  static constexpr int64_t kTile = 4;

  const CpuEngine& engine_;
  const WinogradKernels& kernels_;
  int64_t rows_;
  int64_t columns_;
  int64_t block_;
};

// The sum that a convolution's forward pass and its gradient with respect to the input have in
// common, as TapProduct: forward, result and source are output and input; backward they change
// places, and so do the two channel axes of the weights, and the kernels are turned around.
class WinogradProduct {
 public:
  struct Weights {
    const float* data;  // [result * result_stride + source * source_stride + tap]
    int64_t result_stride;
    int64_t source_stride;
    bool turned;  // the last tap first
    bool fixed;   // from one Forget to the next
  };
  // pad: zeros around the source.
  WinogradProduct(CpuEngine& engine, const Shape& result, const Shape& source, int pad);

  // bias: one per result channel, or null. Keeps the transforms of weights that are fixed.
  void Run(int batch, const Weights& weights, const float* source, const float* bias,
           float* result);
  void Forget() { kept_ = {}; }

 private:
  struct Arrays {
    int batch;
    const float* packed;
    const float* source;
    const float* bias;
    float* result;
  };
  void Pack(const Weights& weights, float* packed) const;
  // Packed weights: kept ones, or at `scratch`. Null if there was no memory.
  const float* Packed(const Weights& weights, float* scratch);
  // All steps of a block, whose frequencies are at `patches`. spread(n, body) calls body(i) for i
  // in [0, n).
  template <typename Spread>
  void RunBlock(const Range& block, const Arrays& arrays, float* patches,
                const Spread& spread) const;
  void Mix(int frequency, int64_t columns, const float* packed, const float* patches,
           float* mixed) const;

  CpuEngine& engine_;
  const WinogradKernels& kernels_;
  TiledPlane result_;
  TiledPlane source_;
  TileColumns columns_;
  std::vector<Range> blocks_;  // of result channels
  int64_t packed_floats_;      // of one frequency: per block [source channel][channel of the block]
  int64_t block_floats_;       // of a block's frequencies, of the source and of the result
  DeviceArray<float> kept_;    // packed weights that are fixed
};

// The gradient of the weights, [output channel][input channel][tap]: at each frequency the products
// of the inputs' patches and the outputs' gradients, summed over all columns.
class WinogradWeightGradient {
 public:
  WinogradWeightGradient(CpuEngine& engine, const Shape& input, const Shape& output, int pad);

  void Run(int batch, const float* input, const float* grad_output, float* gradient);

 private:
  void Add(int frequency, int64_t columns, const float* patches, const float* grads,
           float* sums) const;

  CpuEngine& engine_;
  const WinogradKernels& kernels_;
  TiledPlane input_;
  TiledPlane output_;
  TileColumns columns_;
  std::vector<Range> output_pieces_;
  std::vector<Range> input_pieces_;
  int64_t sums_floats_;  // of one frequency: [output channel][input channel]
};

// Sets a result to the bias if its window is all zeros. A plain sum with finite weights gives that
// by itself; minimal filtering leaves a rounding error of the neighbours, and an l2_normalisation
// that follows multiplies the gradient of such a number by up to 1e5. Padding and the canvas around
// a picture have such windows.
class ZeroWindows {
 public:
  // pad: zeros around the source. max_batch: the largest minibatch.
  ZeroWindows(CpuEngine& engine, const Shape& result, const Shape& source, int pad, int max_batch);

  // Sets each result whose window of the source is zero in all channels to its channel's bias.
  // bias: one per result channel, or null, which is 0.
  void SetToBias(int batch, const float* source, const float* bias, float* result);

 private:
  // Marks with 1 the positions at which the source is zero in all channels. Returns whether there
  // is one.
  bool Mark(const float* source, int64_t floats);
  // Marks the windows of a row of results in the same way.
  bool MarkRow(int64_t row, int64_t lanes, uint8_t* windows) const;

  CpuEngine& engine_;
  Shape result_;
  Shape source_;
  int pad_;
  // In the scratch while SetToBias runs.
  uint8_t* marks_ = nullptr;  // [position of the source][lane]
  // 1 for a lane without a sample, whose numbers are not read; all lanes, several times.
  std::vector<uint32_t> unused_;
};

}  // namespace kumo::cpu
