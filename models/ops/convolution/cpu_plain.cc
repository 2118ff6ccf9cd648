// Direct convolution with the samples in the vector lanes, and max pooling in the same pass.
//
// Forward: with pooling, a block of channels is convolved into a band of rows that fits the cache
// and is pooled at once, so the full output never reaches memory.
//
// Backward: the pooled gradient is spread to a full gradient. Then follow the weights' gradient
// (OuterTile, against a zero-padded copy of the input if the convolution pads) and the input's
// gradient (TapProduct in the other direction).
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>

#include <glog/logging.h>

#include "models/ops/convolution/cpu.h"
#include "models/ops/convolution/cpu_tap_product.h"
#include "models/ops/pooling/cpu.h"
#include "models/ops/pooling/cpu_kernel.h"

namespace kumo::cpu {
namespace {

TapProduct::Geometry ForwardGeometry(const ConvolutionSpec& spec) {
  const Shape out = spec.output();
  return {out,
          spec.input,
          spec.kernel_height,
          spec.kernel_width,
          ForwardTaps(spec.input.height(), out.height(), spec.kernel_height, spec.stride, spec.pad,
                      spec.dilation),
          ForwardTaps(spec.input.width(), out.width(), spec.kernel_width, spec.stride, spec.pad,
                      spec.dilation)};
}

TapProduct::Geometry BackwardGeometry(const ConvolutionSpec& spec) {
  const Shape out = spec.output();
  return {spec.input,
          out,
          spec.kernel_height,
          spec.kernel_width,
          BackwardTaps(spec.input.height(), out.height(), spec.kernel_height, spec.stride, spec.pad,
                       spec.dilation),
          BackwardTaps(spec.input.width(), out.width(), spec.kernel_width, spec.stride, spec.pad,
                       spec.dilation)};
}

class Convolution final : public WeightedOp<FloatOp> {
 public:
  Convolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias),
        engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kConvolution)),
        pooling_kernels_(KUMO_AT_ISA(engine.isa, kPooling)),
        spec_(spec),
        out_(spec.output()),
        pool_(spec.pool),
        padded_{spec.input.channels(), spec.input.height() + 2 * spec.pad,
                spec.input.width() + 2 * spec.pad},
        taps_(int64_t{spec.kernel_height} * spec.kernel_width),
        forward_(engine, ForwardGeometry(spec)),
        backward_(engine, BackwardGeometry(spec)),
        grad_blocks_(EvenPieces(spec.outputs, kernels_.outer_rows)),
        tap_blocks_(EvenPieces(spec.input.channels() * taps_, kernels_.outer_columns)) {
    const int64_t lanes = WholeLanes(max_batch);
    if (spec.pad > 0) padded_input_ = {engine.memory, padded_.size() * lanes, kWorkspace};
    if (pool_) {
      CHECK(pool_->pad == 0 && pool_->stride == pool_->kernel_height &&
            pool_->stride == pool_->kernel_width && pool_->input == out_);
      const int64_t band = int64_t{pool_->kernel_height} * out_.width() * lanes;
      band_size_ = kernels_.product_rows * band;
      bands_ = {engine.memory, band_size_ * std::ssize(forward_.blocks()), kWorkspace};
      place_ = {engine.memory, pool_->output().size() * lanes, kWorkspace};
      full_grad_ = {engine.memory, out_.size() * lanes, kWorkspace};
    }
  }

  bool reads_input() const override { return true; }

  int64_t bytes() const override {
    return padded_input_.bytes() + bands_.bytes() + full_grad_.bytes() + place_.bytes() +
           forward_.bytes() + backward_.bytes();
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t lanes = WholeLanes(pass.batch);
    forward_.Pack(weight_, spec_.input.channels() * taps_, taps_);
    if (!pool_) return forward_.Run(lanes, input, bias_, output);
    forward_.Prepare(lanes);
    engine_.Parallel(static_cast<int64_t>(forward_.blocks().size()),
                     [&](int64_t block) { ForwardPooled(block, lanes, input, output); });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    const int64_t lanes = WholeLanes(pass.batch);
    if (bias_gradient_ != nullptr) {
      // Each gradient goes to one place, so the pooled ones have the same sum as the full ones.
      const int64_t plane = pool_ ? pool_->output().plane() : out_.plane();
      engine_.SumRows(grad_output, spec_.outputs, plane * lanes, bias_gradient_);
    }
    const float* full = pool_ ? SpreadGradient(lanes, grad_output) : grad_output;
    if (is_trained()) WeightGradient(lanes, PaddedInput(lanes, input), full);
    if (grad_input == nullptr) return;
    backward_.Pack(weight_, taps_, spec_.input.channels() * taps_);
    backward_.Run(lanes, full, nullptr, grad_input);
  }

 private:
  // One row of windows.
  PoolPlane BandPlane(int64_t lanes) const {
    PoolingSpec band = *pool_;
    band.input = {out_.channels(), pool_->kernel_height, out_.width()};
    return PlaneOf(band, lanes);
  }

  void ForwardPooled(int64_t block, int64_t lanes, const float* input, float* output) {
    const Shape pooled = pool_->output();
    const Range channels = forward_.blocks()[block];
    const PoolPlane plane = BandPlane(lanes);
    float* band = bands_.data() + block * band_size_;
    const int64_t band_channel = pool_->kernel_height * out_.width() * lanes;
    for (int64_t row = 0; row < pooled.height(); ++row) {
      const int64_t first = row * pool_->stride;
      forward_.RunRows(block, {first, first + pool_->kernel_height}, input, bias_, band,
                       band_channel);
      for (int64_t c = channels.begin; c < channels.end; ++c) {
        const int64_t at = (c * pooled.height() + row) * pooled.width() * lanes;
        pooling_kernels_.max(plane, band + (c - channels.begin) * band_channel, output + at,
                             place_.data() + at);
      }
    }
  }

  const float* SpreadGradient(int64_t lanes, const float* grad_output) {
    const PoolPlane plane = PlaneOf(*pool_, lanes);
    const int64_t pooled = pool_->output().plane() * lanes;
    engine_.Parallel(out_.channels(), [&](int64_t c) {
      pooling_kernels_.max_backward(plane, place_.data() + c * pooled, grad_output + c * pooled,
                                    full_grad_.data() + c * out_.plane() * lanes);
    });
    return full_grad_.data();
  }

  // The input with a border of zeros, or the input itself.
  const float* PaddedInput(int64_t lanes, const float* input) {
    if (spec_.pad == 0) return input;
    if (padded_lanes_ != lanes) {
      std::memset(padded_input_.data(), 0, static_cast<size_t>(padded_input_.bytes()));
    }
    padded_lanes_ = lanes;
    const int64_t row = spec_.input.width() * lanes;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      for (int64_t y = 0; y < spec_.input.height(); ++y) {
        const int64_t to = ((c * padded_.height() + y + spec_.pad) * padded_.width() + spec_.pad);
        std::memcpy(padded_input_.data() + to * lanes, input + (c * spec_.input.height() + y) * row,
                    static_cast<size_t>(row) * sizeof(float));
      }
    });
    return padded_input_.data();
  }

  // Start of tap t of the flat weight [channel][row][column] in the padded input.
  int64_t TapPosition(int64_t t) const {
    const int64_t channel = t / taps_;
    const int64_t y = t % taps_ / spec_.kernel_width;
    const int64_t x = t % spec_.kernel_width;
    return (channel * padded_.height() + y * spec_.dilation) * padded_.width() + x * spec_.dilation;
  }

  void WeightGradient(int64_t lanes, const float* source, const float* grad) {
    const int64_t row = spec_.input.channels() * taps_;
    engine_.Parallel(static_cast<int64_t>(grad_blocks_.size()), [&](int64_t b) {
      const Range& rows = grad_blocks_[b];
      OuterTile tile{};
      tile.rows = static_cast<int>(rows.size());
      tile.lanes = lanes;
      tile.grad_channel = out_.plane() * lanes;
      tile.grad = grad + rows.begin * tile.grad_channel;
      tile.height = out_.height();
      tile.width = out_.width();
      tile.source = source;
      tile.source_row = spec_.stride * padded_.width() * lanes;
      tile.source_step = spec_.stride * lanes;
      tile.gradient_row = row;
      for (const Range& taps : tap_blocks_) {
        int64_t offsets[8];
        for (int64_t t = taps.begin; t < taps.end; ++t) {
          offsets[t - taps.begin] = TapPosition(t) * lanes;
        }
        tile.columns = static_cast<int>(taps.size());
        tile.column_source = offsets;
        tile.gradient = weight_gradient_ + rows.begin * row + taps.begin;
        kernels_.outer(tile);
      }
    });
  }

  CpuEngine& engine_;
  const ConvolutionKernels& kernels_;
  const PoolingKernels& pooling_kernels_;
  ConvolutionSpec spec_;
  Shape out_;  // before pooling
  std::optional<PoolingSpec> pool_;
  Shape padded_;
  int64_t taps_;
  TapProduct forward_;
  TapProduct backward_;
  std::vector<Range> grad_blocks_;
  std::vector<Range> tap_blocks_;
  DeviceArray<float> padded_input_;
  int64_t padded_lanes_ = 0;
  int64_t band_size_ = 0;
  DeviceArray<float> bands_;    // one per block of channels
  DeviceArray<uint8_t> place_;  // of the maxima
  DeviceArray<float> full_grad_;
};

}  // namespace

std::unique_ptr<Op> MakePlainConvolution(CpuEngine& engine, const ConvolutionSpec& spec,
                                         int max_batch) {
  return std::make_unique<Convolution>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
