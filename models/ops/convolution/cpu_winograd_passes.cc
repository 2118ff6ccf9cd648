#include "models/ops/convolution/cpu_winograd_passes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

// Columns of a block.
constexpr int64_t kProductBlock = 64;
// Columns of a block for the weights' gradient: products are summed over the columns, so more of
// them pay, until they no longer fit a cache.
int64_t GradientBlock(const Shape& input, const Shape& output) {
  constexpr int64_t kBlockFloats = 4 << 20;
  const int64_t row = TileColumns::kFrequencies * (input.channels() + output.channels());
  return std::clamp<int64_t>(kBlockFloats / row / 64 * 64, 128, 512);
}

constexpr int64_t kKernel = 3;

// Floats of a channel that are read together. After some channels usually each of them has had a
// number that is not zero, and the others need not be read.
constexpr int64_t kMarkedAtOnce = 256;
constexpr int64_t kChannelsBetweenChecks = 4;

// sizes[i] |= the bits of x[i] but its sign: 0 of zeros alone.
void AddSizes(const float* x, int64_t n, uint32_t* sizes) {
  constexpr uint32_t kNoSign = 0x7fffffff;
  if (n == kMarkedAtOnce) {  // a number that the compiler knows, so that it takes whole vectors
    for (int64_t i = 0; i < kMarkedAtOnce; ++i) sizes[i] |= std::bit_cast<uint32_t>(x[i]) & kNoSign;
  } else {
    for (int64_t i = 0; i < n; ++i) sizes[i] |= std::bit_cast<uint32_t>(x[i]) & kNoSign;
  }
}

bool HasZero(const uint32_t (&sizes)[kMarkedAtOnce]) {
  uint32_t zeros = 0;
  for (const uint32_t size : sizes) zeros += size == 0 ? 1 : 0;
  return zeros != 0;
}

// Marks in the scratch, and a row of windows for each thread.
int64_t MarkFloats(const Shape& source, int64_t lanes) {
  return source.plane() * lanes / static_cast<int64_t>(sizeof(float)) + kSampleLanes;
}
int64_t RowFloats(const Shape& result, int64_t lanes) {
  return result.width() * lanes / static_cast<int64_t>(sizeof(float)) + kSampleLanes;
}

}  // namespace

TileColumns::TileColumns(const CpuEngine& engine, const Shape& tiled, int64_t block)
    : engine_(engine),
      kernels_(KUMO_AT_ISA(engine.isa, kWinograd)),
      rows_((tiled.height() + kTile - 1) / kTile),
      columns_((tiled.width() + kTile - 1) / kTile),
      block_(block) {}

std::vector<Range> TileColumns::Blocks(int batch) const {
  const int64_t columns = rows_ * columns_ * Taken(batch);
  std::vector<Range> blocks =
      EvenPieces((columns + kSampleLanes - 1) / kSampleLanes, block_ / kSampleLanes);
  for (Range& block : blocks) {
    block.begin *= kSampleLanes;
    block.end *= kSampleLanes;
  }
  return blocks;
}

void TileColumns::ClearRest(const Range& block, int batch, int64_t channels, float* to) const {
  const int64_t end = rows_ * columns_ * Taken(batch);
  for (int64_t at = std::max(block.begin, end); at < block.end; ++at) {
    const int64_t column = at - block.begin;
    float* const place =
        to + column / strip_floats() * strip_stride(channels) + column % strip_floats();
    for (int f = 0; f < kFrequencies; ++f) place[f * matrix_floats(channels)] = 0.0f;
  }
}

int64_t TileColumns::strip_stride(int64_t channels) const {
  // An odd number of cache lines.
  const int64_t lines = (channels * strip_floats() + kSampleLanes - 1) / kSampleLanes;
  return (lines | 1) * kSampleLanes;
}

int64_t TileColumns::matrix_floats(int64_t channels) const {
  const int64_t strips = (block_ + strip_floats() - 1) / strip_floats();
  return strips * strip_stride(channels) + kSampleLanes;
}

WinogradProduct::WinogradProduct(CpuEngine& engine, const Shape& result, const Shape& source,
                                 int pad)
    : engine_(engine),
      kernels_(KUMO_AT_ISA(engine.isa, kWinograd)),
      result_{result, 0},
      source_{source, -pad},
      columns_(engine, result, kProductBlock),
      blocks_(EvenPieces(result.channels(), kernels_.product_rows)),
      packed_floats_((result.channels() * source.channels() / kSampleLanes + 2) * kSampleLanes),
      block_floats_(TileColumns::kFrequencies * (columns_.matrix_floats(source.channels()) +
                                                 columns_.matrix_floats(result.channels()))) {
  engine.ReserveScratch(TileColumns::kFrequencies * packed_floats_ +
                        engine.threads() * block_floats_);
}

void WinogradProduct::Pack(const Weights& weights, float* packed) const {
  const int64_t depth = source_.shape.channels();
  constexpr int64_t kTaps = 9;
  const float* const first = weights.data + (weights.turned ? kTaps - 1 : 0);
  engine_.Parallel(std::ssize(blocks_), [&](int64_t b) {
    const Range& rows = blocks_[b];
    for (int64_t s = 0; s < depth; ++s) {
      kernels_.weights(static_cast<int>(rows.size()),
                       first + rows.begin * weights.result_stride + s * weights.source_stride,
                       weights.result_stride, weights.turned ? -1 : 1, packed_floats_,
                       packed + rows.begin * depth + s * rows.size());
    }
  });
}

const float* WinogradProduct::Packed(const Weights& weights, float* scratch) {
  if (!weights.fixed) {
    Pack(weights, scratch);
    return scratch;
  }
  if (kept_.empty()) {
    kept_ = {engine_.memory, TileColumns::kFrequencies * packed_floats_, "transformed weights"};
    if (!kept_.empty()) Pack(weights, kept_.data());
  }
  return kept_.data();
}

void WinogradProduct::Mix(int frequency, int64_t columns, const float* packed, const float* patches,
                          float* mixed) const {
  const int64_t strip = columns_.strip_floats();
  WinogradProductTile tile{};
  tile.depth = source_.shape.channels();
  for (int64_t begin = 0; begin < columns; begin += strip) {
    tile.columns = std::min(strip, columns - begin);
    tile.source = patches + frequency * columns_.matrix_floats(tile.depth) +
                  begin / strip * columns_.strip_stride(tile.depth);
    float* const results = mixed + frequency * columns_.matrix_floats(result_.shape.channels()) +
                           begin / strip * columns_.strip_stride(result_.shape.channels());
    for (const Range& rows : blocks_) {
      tile.rows = static_cast<int>(rows.size());
      tile.weights = packed + frequency * packed_floats_ + rows.begin * tile.depth;
      tile.result = results + rows.begin * strip;
      kernels_.product(tile);
    }
  }
}

template <typename Spread>
void WinogradProduct::RunBlock(const Range& block, const Arrays& arrays, float* patches,
                               const Spread& spread) const {
  const int64_t source_channels = source_.shape.channels();
  float* const mixed =
      patches + TileColumns::kFrequencies * columns_.matrix_floats(source_channels);
  const int64_t strip = columns_.strip_floats();
  const int64_t lanes = engine_.Lanes(arrays.batch);
  spread(source_channels, [&](int64_t c) {
    columns_.ForEachTile(block, arrays.batch, source_, [&](const WinogradTile& tile) {
      kernels_.patch(tile, arrays.source + c * source_.shape.plane() * lanes, patches + c * strip);
    });
  });
  spread(TileColumns::kFrequencies,
         [&](int64_t f) { Mix(static_cast<int>(f), block.size(), arrays.packed, patches, mixed); });
  spread(result_.shape.channels(), [&](int64_t c) {
    columns_.ForEachTile(block, arrays.batch, result_, [&](const WinogradTile& tile) {
      kernels_.result(tile, mixed + c * strip, arrays.bias == nullptr ? 0.0f : arrays.bias[c],
                      arrays.result + c * result_.shape.plane() * lanes);
    });
  });
}

void WinogradProduct::Run(int batch, const Weights& weights, const float* source, const float* bias,
                          float* result) {
  float* const scratch = engine_.Scratch();
  if (scratch == nullptr) return;
  const float* const packed = Packed(weights, scratch);
  if (packed == nullptr) return;
  float* const blocks_own = scratch + TileColumns::kFrequencies * packed_floats_;
  const Arrays arrays{batch, packed, source, bias, result};
  const std::vector<Range> blocks = columns_.Blocks(batch);
  // Threads take whole blocks while there is one for each of them, and share each block of the
  // rest.
  const int64_t whole = std::ssize(blocks) / engine_.threads() * engine_.threads();
  std::atomic<int64_t> next{0};
  engine_.Parallel(whole == 0 ? 0 : engine_.threads(), [&](int64_t thread) {
    for (int64_t b = next++; b < whole; b = next++) {
      RunBlock(blocks[b], arrays, blocks_own + thread * block_floats_,
               [](int64_t n, const auto& body) {
                 for (int64_t i = 0; i < n; ++i) body(i);
               });
    }
  });
  for (int64_t b = whole; b < std::ssize(blocks); ++b) {
    RunBlock(blocks[b], arrays, blocks_own,
             [&](int64_t n, const auto& body) { engine_.Parallel(n, body); });
  }
}

WinogradWeightGradient::WinogradWeightGradient(CpuEngine& engine, const Shape& input,
                                               const Shape& output, int pad)
    : engine_(engine),
      kernels_(KUMO_AT_ISA(engine.isa, kWinograd)),
      input_{input, -pad},
      output_{output, 0},
      columns_(engine, output, GradientBlock(input, output)),
      output_pieces_(EvenPieces(output.channels(), kernels_.outer_rows)),
      input_pieces_(EvenPieces(input.channels(), kernels_.outer_columns)),
      sums_floats_((output.channels() * input.channels() / kSampleLanes + 2) * kSampleLanes) {
  engine.ReserveScratch(TileColumns::kFrequencies *
                        (sums_floats_ + columns_.matrix_floats(input.channels()) +
                         columns_.matrix_floats(output.channels())));
}

void WinogradWeightGradient::Add(int frequency, int64_t columns, const float* patches,
                                 const float* grads, float* sums) const {
  const int64_t strip = columns_.strip_floats();
  const int64_t inputs = input_.shape.channels();
  const int64_t outputs = output_.shape.channels();
  WinogradOuterTile tile{};
  tile.floats = columns;
  tile.grad_strip = columns_.strip_stride(outputs);
  tile.source_strip = columns_.strip_stride(inputs);
  tile.sum_row = inputs;
  for (const Range& rows : output_pieces_) {
    tile.rows = static_cast<int>(rows.size());
    tile.grad = grads + frequency * columns_.matrix_floats(outputs) + rows.begin * strip;
    for (const Range& piece : input_pieces_) {
      tile.columns = static_cast<int>(piece.size());
      tile.source = patches + frequency * columns_.matrix_floats(inputs) + piece.begin * strip;
      tile.sum = sums + frequency * sums_floats_ + rows.begin * inputs + piece.begin;
      kernels_.outer(tile);
    }
  }
}

void WinogradWeightGradient::Run(int batch, const float* input, const float* grad_output,
                                 float* gradient) {
  float* const sums = engine_.Scratch();
  if (sums == nullptr) return;
  const int64_t inputs = input_.shape.channels();
  const int64_t outputs = output_.shape.channels();
  float* const patches = sums + TileColumns::kFrequencies * sums_floats_;
  float* const grads = patches + TileColumns::kFrequencies * columns_.matrix_floats(inputs);
  const int64_t strip = columns_.strip_floats();
  const int64_t lanes = engine_.Lanes(batch);
  std::fill(sums, patches, 0.0f);
  for (const Range& block : columns_.Blocks(batch)) {
    engine_.Parallel(inputs, [&](int64_t c) {
      columns_.ForEachTile(block, batch, input_, [&](const WinogradTile& tile) {
        kernels_.patch(tile, input + c * input_.shape.plane() * lanes, patches + c * strip);
      });
      columns_.ClearRest(block, batch, inputs, patches + c * strip);
    });
    engine_.Parallel(outputs, [&](int64_t c) {
      columns_.ForEachTile(block, batch, output_, [&](const WinogradTile& tile) {
        kernels_.gradient(tile, grad_output + c * output_.shape.plane() * lanes, grads + c * strip);
      });
      columns_.ClearRest(block, batch, outputs, grads + c * strip);
    });
    engine_.Parallel(TileColumns::kFrequencies, [&](int64_t f) {
      Add(static_cast<int>(f), block.size(), patches, grads, sums);
    });
  }
  constexpr int64_t kTaps = 9;
  engine_.Parallel(outputs, [&](int64_t k) {
    kernels_.weight_gradient(inputs, sums + k * inputs, sums_floats_,
                             gradient + k * inputs * kTaps);
  });
}

ZeroWindows::ZeroWindows(CpuEngine& engine, const Shape& result, const Shape& source, int pad,
                         int max_batch)
    : engine_(engine), result_(result), source_(source), pad_(pad) {
  const int64_t lanes = WholeLanes(max_batch);
  unused_.reserve(lanes + kMarkedAtOnce);
  engine.ReserveScratch(MarkFloats(source, lanes) + engine.threads() * RowFloats(result, lanes));
}

bool ZeroWindows::Mark(const float* source, int64_t floats) {
  const int64_t lanes = floats / source_.plane();
  std::atomic<bool> found{false};
  engine_.Parallel((floats + kMarkedAtOnce - 1) / kMarkedAtOnce, [&](int64_t piece) {
    const int64_t begin = piece * kMarkedAtOnce;
    const int64_t n = std::min(kMarkedAtOnce, floats - begin);
    uint32_t sizes[kMarkedAtOnce];
    std::memcpy(sizes, unused_.data() + begin % lanes, sizeof(sizes));
    for (int64_t i = n; i < kMarkedAtOnce; ++i) sizes[i] = 1;
    for (int64_t c = 0; c < source_.channels(); ++c) {
      if (c > 0 && c % kChannelsBetweenChecks == 0 && !HasZero(sizes)) break;
      AddSizes(source + c * floats + begin, n, sizes);
    }
    for (int64_t i = 0; i < n; ++i) marks_[begin + i] = sizes[i] == 0 ? 1 : 0;
    if (HasZero(sizes)) found = true;
  });
  return found;
}

bool ZeroWindows::MarkRow(int64_t row, int64_t lanes, uint8_t* windows) const {
  const int64_t floats = result_.width() * lanes;
  std::fill_n(windows, floats, uint8_t{1});
  bool found = true;
  for (int64_t i = 0; i < kKernel && found; ++i) {
    const int64_t from = row + i - pad_;
    if (from < 0 || from >= source_.height()) continue;
    const uint8_t* const marks = marks_ + from * source_.width() * lanes;
    for (int64_t j = 0; j < kKernel; ++j) {
      // Results whose tap j is inside the source.
      const int64_t shift = j - pad_;
      const int64_t begin = std::max<int64_t>(0, -shift) * lanes;
      const int64_t end = std::min(result_.width(), source_.width() - shift) * lanes;
      for (int64_t x = begin; x < end; ++x) windows[x] &= marks[x + shift * lanes];
    }
    found = std::memchr(windows, 1, floats) != nullptr;
  }
  return found;
}

void ZeroWindows::SetToBias(int batch, const float* source, const float* bias, float* result) {
  float* const scratch = engine_.Scratch();
  if (scratch == nullptr) return;
  const int64_t lanes = engine_.Lanes(batch);
  marks_ = reinterpret_cast<uint8_t*>(scratch);
  unused_.resize(lanes + kMarkedAtOnce);
  for (int64_t i = 0; i < std::ssize(unused_); ++i) unused_[i] = i % lanes < batch ? 0 : 1;
  if (!Mark(source, source_.plane() * lanes)) return;
  float* const rows = scratch + MarkFloats(source_, lanes);
  const int64_t threads = engine_.threads();
  engine_.Parallel(threads, [&](int64_t thread) {
    auto* const windows = reinterpret_cast<uint8_t*>(rows + thread * RowFloats(result_, lanes));
    for (int64_t row = thread; row < result_.height(); row += threads) {
      if (!MarkRow(row, lanes, windows)) continue;
      for (int64_t c = 0; c < result_.channels(); ++c) {
        const float at_zeros = bias == nullptr ? 0.0f : bias[c];
        float* const to = result + (c * result_.height() + row) * result_.width() * lanes;
        for (int64_t x = 0; x < result_.width() * lanes; ++x) {
          to[x] = windows[x] != 0 ? at_zeros : to[x];
        }
      }
    }
  });
}

}  // namespace kumo::cpu
