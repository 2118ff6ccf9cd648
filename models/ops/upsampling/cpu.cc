// Upsampling. One channel is one unit of work.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/ops.h"
#include "models/ops/upsampling/cpu_kernel.h"

namespace kumo::cpu {
namespace {

// Sources of the results along an axis of `size` sources.
std::vector<UpsamplingSource> SourcesAlong(const UpsamplingSpec& spec, int64_t size) {
  std::vector<UpsamplingSource> sources;
  const int64_t factor = spec.factor;
  for (int64_t i = 0; i < size * factor; ++i) {
    if (spec.interpolation == UpsamplingSpec::Interpolation::kNearest) {
      sources.push_back({i / factor, i / factor, 0});
      continue;
    }
    // In steps of 1 / (2 factor).
    const int64_t place = std::max<int64_t>(2 * i + 1 - factor, 0);
    const int64_t first = place / (2 * factor);
    const int64_t second = std::min(first + 1, size - 1);
    const float share = static_cast<float>(place % (2 * factor)) / static_cast<float>(2 * factor);
    sources.push_back({first, second, first == second ? 0 : share});
  }
  return sources;
}

class Upsampling final : public FloatOp {
 public:
  Upsampling(CpuEngine& engine, const UpsamplingSpec& spec)
      : engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kUpsampling)),
        spec_(spec),
        rows_(SourcesAlong(spec, spec.input.height())),
        columns_(SourcesAlong(spec, spec.input.width())) {}

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const UpsamplingPlane plane = PlaneFor(pass);
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(),
                     [&](int64_t c) { kernels_.forward(plane, input + c * in, output + c * out); });
  }

  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    const UpsamplingPlane plane = PlaneFor(pass);
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      std::fill_n(grad_input + c * in, in, 0.0f);
      kernels_.backward(plane, grad_output + c * out, grad_input + c * in);
    });
  }

 private:
  UpsamplingPlane PlaneFor(const Pass& pass) const {
    return {engine_.Lanes(pass.batch),
            spec_.input.width(),
            static_cast<int64_t>(rows_.size()),
            static_cast<int64_t>(columns_.size()),
            rows_.data(),
            columns_.data()};
  }

  CpuEngine& engine_;
  const UpsamplingKernels& kernels_;
  UpsamplingSpec spec_;
  std::vector<UpsamplingSource> rows_;
  std::vector<UpsamplingSource> columns_;
};

}  // namespace

// The op works on positions, each by vectors of its samples.
Padding PaddingOf(const UpsamplingSpec&) { return Padding::kSingle; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const UpsamplingSpec& spec, int) {
  return NewOp<Upsampling>(engine, spec);
}

}  // namespace kumo::cpu
