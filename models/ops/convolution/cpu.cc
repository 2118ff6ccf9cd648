// Choice of the way in which a convolution is computed.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/backend/cpu/ops.h"
#include "models/ops/convolution/cpu.h"

namespace kumo::cpu {
namespace {

// So many that what is done once for a minibatch does not count.
constexpr int kManySamples = 1 << 16;

// One way, and another one for few samples, since a plain convolution knows whole rows of 16 lanes
// alone. The minibatch tells, not the largest that there may be: results do not depend on that.
class ConvolutionByBatch final : public Op {
 public:
  ConvolutionByBatch(const CpuEngine& engine, const ConvolutionSpec& spec, std::unique_ptr<Op> many,
                     std::unique_ptr<Op> few)
      : engine_(engine), spec_(spec), many_(std::move(many)), few_(std::move(few)) {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return many_->bytes() + few_->bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    many_->Bind(weights, gradients);
    few_->Bind(weights, gradients);
  }
  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    For(pass).Forward(pass, inputs, outputs);
  }
  void Backward(const Pass& pass, const Gradients& arrays) override {
    For(pass).Backward(pass, arrays);
  }

 private:
  Op& For(const Pass& pass) {
    const bool many =
        pass.batch > kFewSamples || (WayOf(spec_) == ConvolutionWay::kMinimal &&
                                     PaysByWinograd(spec_, pass.batch, engine_.Lanes(pass.batch)));
    return many ? *many_ : *few_;
  }

  const CpuEngine& engine_;
  const ConvolutionSpec spec_;
  std::unique_ptr<Op> many_;
  std::unique_ptr<Op> few_;
};

}  // namespace

std::vector<Range> EvenPieces(int64_t n, int64_t most) {
  const int64_t count = (n + most - 1) / most;
  std::vector<Range> pieces;
  for (int64_t i = 0; i < count; ++i) pieces.push_back({n * i / count, n * (i + 1) / count});
  return pieces;
}

ConvolutionWay WayOf(const ConvolutionSpec& spec) {
  if (spec.groups > 1) return ConvolutionWay::kGrouped;
  if (spec.pool) return ConvolutionWay::kPlain;
  if (PaysByWinograd(spec, kManySamples, kManySamples)) return ConvolutionWay::kMinimal;
  // Few channels leave a product of matrices little to do.
  constexpr int64_t kLeastChannels = 16;
  const bool one_by_one = spec.kernel_height == 1 && spec.kernel_width == 1;
  if ((one_by_one || spec.stride > 1 || spec.dilation > 1) &&
      spec.input.channels() >= kLeastChannels) {
    return ConvolutionWay::kGathered;
  }
  return ConvolutionWay::kPlain;
}

bool FusesPooling(const ConvolutionSpec& spec) { return WayOf(spec) == ConvolutionWay::kPlain; }

std::unique_ptr<Op> MakeConvolution(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch) {
  const ConvolutionWay way = WayOf(spec);
  if (way == ConvolutionWay::kGrouped) return MakeGroupedConvolution(engine, spec, max_batch);
  if (way == ConvolutionWay::kGathered) return MakeGatheredConvolution(engine, spec, max_batch);
  std::unique_ptr<Op> op = way == ConvolutionWay::kMinimal
                               ? MakeWinogradConvolution(engine, spec, max_batch)
                               : MakePlainConvolution(engine, spec, max_batch);
  if (spec.pool) return op;
  return std::make_unique<ConvolutionByBatch>(
      engine, spec, std::move(op),
      MakeGatheredConvolution(engine, spec, std::min(max_batch, kFewSamples)));
}

// With a pool, 16 samples of a position at a time; else each position by vectors of its samples, or
// several positions by one vector.
Padding PaddingOf(const ConvolutionSpec& spec) {
  return spec.pool ? Padding::kWhole : Padding::kSingle;
}

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const ConvolutionSpec& spec, int max_batch) {
  return MakeConvolution(engine, spec, max_batch);
}

}  // namespace kumo::cpu
