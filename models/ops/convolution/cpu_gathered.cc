// Convolution as a product of matrices. Row (channel, tap) of a gathered matrix holds the numbers
// that the tap reads for each result position and sample; the results are weight [outputs][channel,
// tap] times the gathered matrix. A block of positions is gathered and multiplied at a time, so
// that the gathered numbers are still in a cache. Only the samples are gathered, without their
// padding.
//
// For kernels of 1x1 and products per position, whose rows need not be gathered if the samples have
// no padding; for strides, with which the plain way (cpu_plain.cc) reads few of the numbers of a
// cache line; for dilations, with which it reads distant rows; and for minibatches that leave most
// of a vector empty.
#include <algorithm>
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cpu/matrix_product.h"
#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

// Rows this many floats apart, or a multiple, share one place of a cache: products of such are half
// as fast.
constexpr int64_t kCacheStride = 1024;
// Size of the gathered block and the result's block together, in floats: about a second-level
// cache.
constexpr int64_t kGatheredFloats = 512 << 10;
constexpr int64_t kLeastColumns = 384;
constexpr int64_t kMostColumns = 2048;

class GatheredConvolution final : public WeightedOp<FloatOp> {
 public:
  GatheredConvolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias),
        engine_(engine),
        spec_(spec),
        results_(spec.output().plane()),
        sources_(spec.input.plane()),
        taps_(spec.kernel_height * spec.kernel_width),
        depth_(spec.input.channels() * taps_),
        one_to_one_(taps_ == 1 && results_ == sources_ && spec.pad == 0) {
    CHECK(!spec.pool);
    // No minibatch up to that size has blocks of more columns.
    const int64_t most = std::min(results_ * max_batch, std::max<int64_t>(Wanted(), max_batch));
    engine.ReserveScratch((depth_ + spec.outputs) * (most + kSampleLanes));
  }

  bool reads_input() const override { return true; }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    float* const scratch = engine_.Scratch();
    if (scratch == nullptr) return;
    ForEachBlock(pass, [&](const Block& block) {
      const Rows<const float> from = Gathered(block, input, scratch);
      const Rows<float> to = ResultRows(block, output, scratch + depth_ * block.row);
      engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
        MultiplyRows(end - begin, block.columns, depth_, {weight_ + begin * depth_, 'N', depth_},
                     {from.data, 'N', from.row}, false, to.data + begin * to.row, to.row);
        for (int64_t o = begin; o < end; ++o) {
          Spread(block, to.data + o * to.row, bias_ == nullptr ? 0.0f : bias_[o],
                 output + (o * results_ + block.positions.begin) * block.lanes);
        }
      });
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    float* const scratch = engine_.Scratch();
    if (scratch == nullptr) return;
    const int64_t lanes = engine_.Lanes(pass.batch);
    if (bias_gradient_ != nullptr) {
      engine_.SumRows(grad_output, spec_.outputs, results_ * lanes, bias_gradient_);
    }
    if (grad_input != nullptr && !one_to_one_) {
      engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
        std::fill_n(grad_input + c * sources_ * lanes, sources_ * lanes, 0.0f);
      });
    }
    ForEachBlock(pass, [&](const Block& block) {
      const Rows<const float> grads =
          PackedGradients(block, grad_output, scratch + depth_ * block.row);
      if (is_trained()) WeightGradient(block, Gathered(block, input, scratch), grads);
      if (grad_input != nullptr) InputGradient(block, grads, scratch, grad_input);
    });
  }

 private:
  // Some result positions, whose samples are columns of the products.
  struct Block {
    Range positions;
    int64_t batch;
    int64_t lanes;
    int64_t columns;
    int64_t row;  // floats between rows of what is gathered or packed
  };
  template <typename T>
  struct Rows {
    T* data;
    int64_t row;
  };

  void WeightGradient(const Block& block, const Rows<const float>& from,
                      const Rows<const float>& grads) {
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, depth_, block.columns,
                   {grads.data + begin * grads.row, 'N', grads.row}, {from.data, 'T', from.row},
                   block.positions.begin > 0, weight_gradient_ + begin * depth_, depth_);
    });
  }

  // Neighbouring result positions for which a tap reads neighbouring source positions, or none.
  struct Run {
    int64_t begin;
    int64_t end;
    int64_t source;  // of the first one; -1: outside the plane
  };

  // Result places along an axis of `results` whose source place for a tap lies in [0, sources).
  Range Inside(int64_t results, int64_t sources, int64_t tap) const {
    const int64_t first = tap * spec_.dilation - spec_.pad;  // source place of result place 0
    const auto places_below = [&](int64_t source) {          // whose source place is below it
      const int64_t span = source - first;
      return span <= 0 ? 0 : std::min(results, (span + spec_.stride - 1) / spec_.stride);
    };
    return {places_below(0), places_below(sources)};
  }
  // Calls body(run) for the runs of a tap in the block, in their order. They are worked out each
  // time: a table of those of a strided convolution would have an entry for each position and tap.
  template <typename Body>
  void ForEachRun(const Block& block, int64_t t, const Body& body) const {
    const Shape out = spec_.output(), &in = spec_.input;
    const int64_t ky = t / spec_.kernel_width, kx = t % spec_.kernel_width;
    const Range rows = Inside(out.height(), in.height(), ky);
    const Range columns = Inside(out.width(), in.width(), kx);
    // Rows that follow each other in the source, too.
    const bool whole =
        spec_.stride == 1 && columns.size() == out.width() && out.width() == in.width();
    const int64_t width = out.width(), end = block.positions.end;
    const auto row_source = [&](int64_t row) {  // of column 0
      return (row * spec_.stride - spec_.pad + ky * spec_.dilation) * in.width() - spec_.pad +
             kx * spec_.dilation;
    };
    for (int64_t p = block.positions.begin; p < end;) {
      int64_t row = p / width;
      if (row < rows.begin || row >= rows.end) {
        const int64_t to = std::min(end, row < rows.begin ? rows.begin * width : results_);
        body(Run{p, to, -1});
        p = to;
        continue;
      }
      const int64_t inside_end = std::min(end, rows.end * width);
      if (whole) {
        body(Run{p, inside_end, row_source(row) + p % width});
        p = inside_end;
        continue;
      }
      for (; p < inside_end; ++row) {
        const int64_t first = row * width, last = std::min(inside_end, first + width);
        const int64_t left = std::clamp(first + columns.begin, p, last);
        const int64_t right = std::clamp(first + columns.end, left, last);
        const int64_t source = row_source(row);
        if (p < left) body(Run{p, left, -1});
        if (spec_.stride == 1) {
          if (left < right) body(Run{left, right, source + left - first});
        } else {
          for (int64_t i = left; i < right; ++i) {
            body(Run{i, i + 1, source + (i - first) * spec_.stride});
          }
        }
        if (right < last) body(Run{right, last, -1});
        p = last;
      }
    }
  }

  // Columns of a block, in whole positions.
  int64_t Wanted() const {
    return std::clamp(kGatheredFloats / (depth_ + spec_.outputs), kLeastColumns, kMostColumns);
  }
  int64_t BlockColumns(int64_t batch) const {
    return std::max<int64_t>(1, std::min(results_, Wanted() / batch)) * batch;
  }
  template <typename Body>
  void ForEachBlock(const Pass& pass, const Body& body) const {
    const int64_t columns = BlockColumns(pass.batch);
    const int64_t apart = columns % kCacheStride == 0 ? kSampleLanes : 0;
    CHECK_LE((depth_ + spec_.outputs) * (columns + apart), engine_.scratch_floats);
    for (const Range& positions : EvenPieces(results_, columns / pass.batch)) {
      body({positions, pass.batch, engine_.Lanes(pass.batch), positions.size() * pass.batch,
            columns + apart});
    }
  }
  // Whether the activations' own rows are as good as packed ones.
  static bool AsTheyAre(const Block& block, int64_t positions) {
    return block.batch == block.lanes && positions * block.lanes % kCacheStride != 0;
  }

  Rows<const float> Gathered(const Block& block, const float* input, float* to) {
    if (one_to_one_ && AsTheyAre(block, sources_)) {
      return {input + block.positions.begin * block.lanes, sources_ * block.lanes};
    }
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      const float* const channel = input + c * sources_ * block.lanes;
      if (one_to_one_) {
        CopyPositions(block, block.positions.size(), channel + block.positions.begin * block.lanes,
                      to + c * block.row);
        return;
      }
      for (int64_t t = 0; t < taps_; ++t) {
        float* const row = to + (c * taps_ + t) * block.row;
        ForEachRun(block, t, [&](const Run& run) {
          float* const at = row + (run.begin - block.positions.begin) * block.batch;
          if (run.source < 0) {
            std::fill_n(at, (run.end - run.begin) * block.batch, 0.0f);
          } else {
            CopyPositions(block, run.end - run.begin, channel + run.source * block.lanes, at);
          }
        });
      }
    });
    return {to, block.row};
  }
  // A channel's numbers at neighbouring positions.
  static void CopyPositions(const Block& block, int64_t positions, const float* from, float* to) {
    if (block.batch == block.lanes) {
      std::copy_n(from, positions * block.batch, to);
      return;
    }
    for (int64_t i = 0; i < positions; ++i) {
      CopySamples(from + i * block.lanes, block.batch, to + i * block.batch);
    }
  }
  // Destination of the products: their place in the activations, or a packed one.
  Rows<float> ResultRows(const Block& block, float* output, float* packed) const {
    if (!AsTheyAre(block, results_)) return {packed, block.row};
    return {output + block.positions.begin * block.lanes, results_ * block.lanes};
  }
  Rows<const float> PackedGradients(const Block& block, const float* grad_output, float* to) {
    if (AsTheyAre(block, results_)) {
      return {grad_output + block.positions.begin * block.lanes, results_ * block.lanes};
    }
    engine_.Parallel(spec_.outputs, [&](int64_t o) {
      const float* from = grad_output + (o * results_ + block.positions.begin) * block.lanes;
      CopyPositions(block, block.positions.size(), from, to + o * block.row);
    });
    return {to, block.row};
  }

  // A row of packed numbers, which may lie there already, to the activations at `to`, and zeros to
  // the padding.
  static void Spread(const Block& block, const float* row, float bias, float* to) {
    if (row == to && bias == 0) return;
    if (block.batch == block.lanes) {
      for (int64_t i = 0; i < block.columns; ++i) to[i] = row[i] + bias;
      return;
    }
    for (int64_t i = 0; i < block.positions.size(); ++i) {
      const float* const from = row + i * block.batch;
      float* const at = to + i * block.lanes;
      for (int64_t n = 0; n < block.batch; ++n) at[n] = from[n] + bias;
      std::fill(at + block.batch, at + block.lanes, 0.0f);
    }
  }

  static void AddPositions(const Block& block, int64_t positions, const float* from, float* to) {
    if (block.batch == block.lanes) {
      for (int64_t i = 0; i < positions * block.batch; ++i) to[i] += from[i];
      return;
    }
    for (int64_t i = 0; i < positions; ++i) {
      for (int64_t n = 0; n < block.batch; ++n) {
        to[i * block.lanes + n] += from[i * block.batch + n];
      }
    }
  }

  // The gathered numbers are no longer needed: their gradients take their place.
  void InputGradient(const Block& block, const Rows<const float>& grads, float* scratch,
                     float* grad_input) {
    const bool in_place = one_to_one_ && AsTheyAre(block, sources_);
    const Rows<float> to = in_place ? Rows<float>{grad_input + block.positions.begin * block.lanes,
                                                  sources_ * block.lanes}
                                    : Rows<float>{scratch, block.row};
    engine_.ParallelPieces(depth_, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, block.columns, spec_.outputs, {weight_ + begin, 'T', depth_},
                   {grads.data, 'N', grads.row}, false, to.data + begin * to.row, to.row);
    });
    if (in_place) return;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      float* const channel = grad_input + c * sources_ * block.lanes;
      if (one_to_one_) {
        return Spread(block, to.data + c * to.row, 0.0f,
                      channel + block.positions.begin * block.lanes);
      }
      for (int64_t t = 0; t < taps_; ++t) {
        const float* const row = to.data + (c * taps_ + t) * to.row;
        ForEachRun(block, t, [&](const Run& run) {
          if (run.source < 0) return;
          AddPositions(block, run.end - run.begin,
                       row + (run.begin - block.positions.begin) * block.batch,
                       channel + run.source * block.lanes);
        });
      }
    });
  }

  CpuEngine& engine_;
  ConvolutionSpec spec_;
  int64_t results_;  // positions
  int64_t sources_;
  int64_t taps_;
  int64_t depth_;          // rows of the gathered matrix
  const bool one_to_one_;  // result position p reads source position p alone
};

}  // namespace

std::unique_ptr<Op> MakeGatheredConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                            int max_batch) {
  return std::make_unique<GatheredConvolution>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
