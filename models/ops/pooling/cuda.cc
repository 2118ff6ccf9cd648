#include "models/ops/pooling/cuda.h"

#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {

namespace {

cudnnPoolingMode_t ModeOf(PoolingSpec::Kind kind) {
  // One of equal maxima gets the gradient, the same one each time; padding does not count.
  return kind == PoolingSpec::Kind::kMax ? CUDNN_POOLING_MAX_DETERMINISTIC
                                         : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

}  // namespace

Pooling::Pooling(Engine& engine, const PoolingSpec& spec) : engine_(engine), spec_(spec) {
  KUMO_CUDA(engine, cudnnCreatePoolingDescriptor(pooling_.receive()));
  KUMO_CUDA(engine, cudnnSetPooling2dDescriptor(
                        pooling_.get(), ModeOf(spec.kind), CUDNN_PROPAGATE_NAN, spec.kernel_height,
                        spec.kernel_width, spec.pad, spec.pad, spec.stride, spec.stride));
}

const Pooling::Tensors& Pooling::Of(int batch) {
  const auto [entry, fresh] = tensors_.try_emplace(batch);
  if (fresh) {
    entry->second.input = Describe(engine_, spec_.input, batch);
    entry->second.output = Describe(engine_, spec_.output(), batch);
  }
  return entry->second;
}

void Pooling::Forward(int batch, const void* input, void* output) {
  const float one = 1.0f;
  const float zero = 0.0f;
  const Tensors& tensors = Of(batch);
  KUMO_CUDA(engine_, cudnnPoolingForward(engine_.cudnn(), pooling_.get(), &one, tensors.input.get(),
                                         input, &zero, tensors.output.get(), output));
}

void Pooling::Backward(int batch, const void* input, const void* output, const void* grad_output,
                       void* grad_input) {
  const float one = 1.0f;
  const float zero = 0.0f;
  const Tensors& tensors = Of(batch);
  KUMO_CUDA(engine_,
            cudnnPoolingBackward(engine_.cudnn(), pooling_.get(), &one, tensors.output.get(),
                                 output, tensors.output.get(), grad_output, tensors.input.get(),
                                 input, &zero, tensors.input.get(), grad_input));
}

namespace {

class PoolingOp final : public UnaryOp {
 public:
  PoolingOp(Engine& engine, const PoolingSpec& spec) : pooling_(engine, spec) {}

  bool reads_input() const override { return true; }
  bool reads_output() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    pooling_.Forward(pass.batch, input, output);
  }
  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input != nullptr) {
      pooling_.Backward(pass.batch, input, output, grad_output, grad_input);
    }
  }

 private:
  Pooling pooling_;
};

// In ceil mode, by our own kernels: cuDNN's windows do not reach beyond the padded input.
class CeilPoolingOp final : public UnaryOp {
 public:
  CeilPoolingOp(Engine& engine, const PoolingSpec& spec, int max_batch)
      : engine_(engine), max_(spec.kind == PoolingSpec::Kind::kMax) {
    const Shape out = spec.output();
    windows_ = {spec.input.channels(),
                0,
                static_cast<int>(spec.input.height()),
                static_cast<int>(spec.input.width()),
                static_cast<int>(out.height()),
                static_cast<int>(out.width()),
                spec.kernel_height,
                spec.kernel_width,
                spec.stride,
                spec.pad};
    if (max_) place_ = DeviceArray<uint8_t>(engine, out.size() * max_batch, "places of maxima");
  }

  int64_t bytes() const override { return place_.bytes(); }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    windows_.batch = pass.batch;
    const Launch launch = engine_.launch();
    if (max_) {
      KUMO_CUDA(engine_,
                MaxPool(launch, engine_.precision(), windows_, input, output, place_.data()));
    } else {
      KUMO_CUDA(engine_, AveragePool(launch, engine_.precision(), windows_, input, output));
    }
  }
  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    windows_.batch = pass.batch;
    const Launch launch = engine_.launch();
    if (max_) {
      KUMO_CUDA(engine_, MaxPoolBackward(launch, engine_.precision(), windows_, place_.data(),
                                         grad_output, grad_input));
    } else {
      KUMO_CUDA(engine_, AveragePoolBackward(launch, engine_.precision(), windows_, grad_output,
                                             grad_input));
    }
  }

 private:
  Engine& engine_;
  bool max_;
  PoolWindows windows_;
  DeviceArray<uint8_t> place_;  // which element of the window won
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const PoolingSpec& spec, int max_batch) {
  if (spec.ceil) return std::make_unique<CeilPoolingOp>(engine, spec, max_batch);
  return std::make_unique<PoolingOp>(engine, spec);
}

}  // namespace kumo::cuda
