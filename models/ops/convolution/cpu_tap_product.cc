// result[r][p] = bias[r] + sum over source channels s and taps t of w[r][s][t] source[s][q(p) + t],
// where each position is `lanes` floats, one for each sample.
//
// Layout. Weights are packed per block of result channels as [source channel][tap][channel of the
// block]: the kernel loads the weights of a tap for all rows of its tile side by side.
//
// Tables instead of conditions. Positions of a result row with the same taps, in equal steps, form
// a run (AddRuns): with padding a row has a run in the middle and one for each position at its
// ends. For each run tap_source has the places of the taps in the source, and tap_weights their
// places in the kernel. The inner loop has no test for borders.
//
// Order of the loops in RunRows: pieces of the source channels, rows, runs. A piece is as large as
// fits the first-level cache (kChunkBytes), so neighbouring positions find their sources there;
// from the second piece on the tile adds to the result. The order of the sum is fixed by the
// shapes, so results do not depend on the number of threads: a thread computes whole blocks of
// channels.
#include "models/ops/convolution/cpu_tap_product.h"

#include <algorithm>

#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

// Bytes of source that a block works through before it goes on to the next result positions: what
// neighbouring positions share should still be in the first-level cache.
constexpr int64_t kChunkBytes = 24 << 10;

// Whether the taps are the same places of the kernel, `shift` further on in the source.
bool SameTapsShifted(const std::vector<Tap>& a, const std::vector<Tap>& b, int64_t* shift) {
  if (a.empty() || a.size() != b.size()) return false;
  *shift = b[0].source - a[0].source;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].kernel != b[i].kernel || b[i].source - a[i].source != *shift) return false;
  }
  return true;
}

}  // namespace

AxisTaps ForwardTaps(int64_t input, int64_t output, int kernel, int stride, int pad, int dilation) {
  AxisTaps taps(output);
  for (int64_t o = 0; o < output; ++o) {
    for (int k = 0; k < kernel; ++k) {
      const int64_t i = o * stride - pad + int64_t{k} * dilation;
      if (i >= 0 && i < input) taps[o].push_back({k, i});
    }
  }
  return taps;
}

AxisTaps BackwardTaps(int64_t input, int64_t output, int kernel, int stride, int pad,
                      int dilation) {
  AxisTaps taps(input);
  for (int64_t i = 0; i < input; ++i) {
    for (int k = 0; k < kernel; ++k) {
      const int64_t scaled = i + pad - int64_t{k} * dilation;
      if (scaled >= 0 && scaled % stride == 0 && scaled / stride < output) {
        taps[i].push_back({k, scaled / stride});
      }
    }
  }
  return taps;
}

TapProduct::TapProduct(CpuEngine& engine, const Geometry& geometry)
    : engine_(engine),
      kernels_(KUMO_AT_ISA(engine.isa, kConvolution)),
      geometry_(geometry),
      blocks_(EvenPieces(geometry.result.channels(), kernels_.product_rows)) {
  const int64_t taps = int64_t{geometry_.kernel_height} * geometry_.kernel_width;
  int64_t floats = 0;
  for (const Range& block : blocks_) {
    block_weights_.push_back(floats);
    floats += block.size() * geometry_.source.channels() * taps;
  }
  packed_ = {engine.memory, floats, kWorkspace};
  TapPlaces places;
  std::vector<int64_t> kinds;  // the first rows of their runs
  for (int64_t row = 0; row < geometry_.result.height(); ++row) {
    int64_t shift = 0;
    const auto first = std::ranges::find_if(kinds, [&](int64_t other) {
      return SameTapsShifted(geometry_.rows[other], geometry_.rows[row], &shift);
    });
    if (first != kinds.end()) {
      row_runs_.push_back({row_runs_[*first].runs, shift * geometry_.source.width()});
      continue;
    }
    AddRuns(row, &places);
    kinds.push_back(row);
  }
  tap_position_ = OnDevice(places.positions);
  tap_source_ = {engine.memory, std::ssize(places.positions), kWorkspace};
  tap_weights_.resize(kernels_.product_rows + 1);
  for (size_t rows = 1; rows < tap_weights_.size(); ++rows) {
    const auto has_rows = [&](const Range& block) {
      return block.size() == static_cast<int64_t>(rows);
    };
    if (std::ranges::none_of(blocks_, has_rows)) continue;
    std::vector<int64_t> numbers = places.kernel;
    for (int64_t& number : numbers) number *= static_cast<int64_t>(rows);
    tap_weights_[rows] = OnDevice(numbers);
  }
}

DeviceArray<int64_t> TapProduct::OnDevice(const std::vector<int64_t>& numbers) const {
  DeviceArray<int64_t> array(engine_.memory, std::ssize(numbers), kWorkspace);
  if (!array.empty()) std::ranges::copy(numbers, array.data());
  return array;
}

int64_t TapProduct::bytes() const {
  int64_t bytes = packed_.bytes() + tap_position_.bytes() + tap_source_.bytes();
  for (const DeviceArray<int64_t>& weights : tap_weights_) bytes += weights.bytes();
  return bytes;
}

void TapProduct::AddRuns(int64_t row, TapPlaces* places) {
  const auto first = static_cast<int64_t>(runs_.size());
  for (int64_t column = 0; column < geometry_.result.width(); ++column) {
    const std::vector<Tap>& taps = geometry_.columns[column];
    int64_t shift = 0;
    if (static_cast<int64_t>(runs_.size()) > first && column > 0 &&
        SameTapsShifted(geometry_.columns[column - 1], taps, &shift) &&
        (runs_.back().count == 1 || runs_.back().source_step == shift)) {
      ++runs_.back().count;
      runs_.back().source_step = shift;
      continue;
    }
    runs_.push_back({column, 1, std::ssize(places->positions), 0, 0});
    for (const Tap& y : geometry_.rows[row]) {
      for (const Tap& x : taps) {
        places->positions.push_back(y.source * geometry_.source.width() + x.source);
        places->kernel.push_back(int64_t{y.kernel} * geometry_.kernel_width + x.kernel);
        ++runs_.back().taps;
      }
    }
  }
  row_runs_.push_back({{first, static_cast<int64_t>(runs_.size())}, 0});
}

void TapProduct::Pack(const float* weights, int64_t result_stride, int64_t source_stride) {
  const int64_t taps = int64_t{geometry_.kernel_height} * geometry_.kernel_width;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    float* to = packed_.data() + block_weights_[b];
    for (int64_t s = 0; s < geometry_.source.channels(); ++s) {
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t r = blocks_[b].begin; r < blocks_[b].end; ++r) {
          *to++ = weights[r * result_stride + s * source_stride + t];
        }
      }
    }
  }
}

void TapProduct::Prepare(int64_t lanes) {
  if (lanes_ == lanes) return;
  lanes_ = lanes;
  for (int64_t i = 0; i < tap_source_.size(); ++i) {
    tap_source_.data()[i] = tap_position_.data()[i] * lanes;
  }
}

void TapProduct::RunRows(int64_t block, Range rows, const float* source, const float* bias,
                         float* result, int64_t result_channel) const {
  const Range& channels = blocks_[block];
  const int64_t taps = int64_t{geometry_.kernel_height} * geometry_.kernel_width;
  const int64_t per_channel = taps * lanes_ * static_cast<int64_t>(sizeof(float));
  const std::vector<Range> chunks =
      EvenPieces(geometry_.source.channels(), std::max<int64_t>(1, kChunkBytes / per_channel));
  ProductTile tile{};
  tile.rows = static_cast<int>(channels.size());
  tile.lanes = lanes_;
  tile.source_channel = geometry_.source.plane() * lanes_;
  tile.weights_channel = taps * channels.size();
  tile.result_channel = result_channel;
  tile.bias = bias == nullptr ? nullptr : bias + channels.begin;
  for (const Range& chunk : chunks) {
    const float* const chunk_source = source + chunk.begin * tile.source_channel;
    tile.source_channels = static_cast<int>(chunk.size());
    tile.weights = packed_.data() + block_weights_[block] + chunk.begin * tile.weights_channel;
    tile.accumulate = chunk.begin > 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      float* row_result = result + (row - rows.begin) * geometry_.result.width() * lanes_;
      const RowRuns& row_runs = row_runs_[row];
      tile.source = chunk_source + row_runs.source * lanes_;
      for (int64_t i = row_runs.runs.begin; i < row_runs.runs.end; ++i) {
        const RunOfPositions& run = runs_[i];
        tile.count = run.count;
        tile.source_step = run.source_step * lanes_;
        tile.tap_source = tap_source_.data() + run.first_tap;
        tile.tap_weights = tap_weights_[channels.size()].data() + run.first_tap;
        tile.taps = run.taps;
        tile.result = row_result + run.column * lanes_;
        kernels_.product(tile);
      }
    }
  }
}

void TapProduct::Run(int64_t lanes, const float* source, const float* bias, float* result) {
  Prepare(lanes);
  const int64_t channel = geometry_.result.plane() * lanes;
  engine_.Parallel(static_cast<int64_t>(blocks_.size()), [&](int64_t block) {
    RunRows(block, {0, geometry_.result.height()}, source, bias,
            result + blocks_[block].begin * channel, channel);
  });
}

}  // namespace kumo::cpu
