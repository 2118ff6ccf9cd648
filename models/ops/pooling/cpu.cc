// Max and average pooling. One channel is one unit of work.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cpu/ops.h"
#include "models/ops/pooling/cpu.h"

namespace kumo::cpu {

PoolPlane PlaneOf(const PoolingSpec& spec, int64_t lanes) {
  const Shape out = spec.output();
  return {lanes,
          static_cast<int>(spec.input.height()),
          static_cast<int>(spec.input.width()),
          static_cast<int>(out.height()),
          static_cast<int>(out.width()),
          spec.kernel_height,
          spec.kernel_width,
          spec.stride,
          spec.pad};
}

namespace {

class MaxPooling final : public FloatOp {
 public:
  MaxPooling(CpuEngine& engine, const PoolingSpec& spec, int max_batch)
      : engine_(engine),
        kernels_(KUMO_AT_ISA(engine.isa, kPooling)),
        spec_(spec),
        place_(engine.memory, spec.output().size() * WholeLanes(max_batch), kWorkspace) {
    CHECK_LE(spec.kernel_height * spec.kernel_width, 255)
        << "a place in the window must fit a byte";
  }

  int64_t bytes() const override { return place_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const PoolPlane plane = PlaneOf(spec_, engine_.Lanes(pass.batch));
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      kernels_.max(plane, input + c * in, output + c * out, place_.data() + c * out);
    });
  }

  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    const PoolPlane plane = PlaneOf(spec_, engine_.Lanes(pass.batch));
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      kernels_.max_backward(plane, place_.data() + c * out, grad_output + c * out,
                            grad_input + c * in);
    });
  }

 private:
  CpuEngine& engine_;
  const PoolingKernels& kernels_;
  PoolingSpec spec_;
  DeviceArray<uint8_t> place_;  // which element of the window won
};

class AveragePooling final : public FloatOp {
 public:
  AveragePooling(CpuEngine& engine, const PoolingSpec& spec)
      : engine_(engine), kernels_(KUMO_AT_ISA(engine.isa, kPooling)), spec_(spec) {}

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const PoolPlane plane = PlaneOf(spec_, engine_.Lanes(pass.batch));
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(),
                     [&](int64_t c) { kernels_.average(plane, input + c * in, output + c * out); });
  }

  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    const PoolPlane plane = PlaneOf(spec_, engine_.Lanes(pass.batch));
    const int64_t in = spec_.input.plane() * plane.lanes;
    const int64_t out = spec_.output().plane() * plane.lanes;
    engine_.Parallel(spec_.input.channels(), [&](int64_t c) {
      kernels_.average_backward(plane, grad_output + c * out, grad_input + c * in);
    });
  }

 private:
  CpuEngine& engine_;
  const PoolingKernels& kernels_;
  PoolingSpec spec_;
};

}  // namespace

// The op works on positions, each by vectors of its samples or several by one vector.
Padding PaddingOf(const PoolingSpec&) { return Padding::kSingle; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const PoolingSpec& spec, int max_batch) {
  if (spec.kind == PoolingSpec::Kind::kMax) {
    return NewOp<MaxPooling>(engine, spec, max_batch);
  }
  return NewOp<AveragePooling>(engine, spec);
}

}  // namespace kumo::cpu
