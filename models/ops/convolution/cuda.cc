// Convolution by cuDNN, with max pooling of the output if the spec has it. Biases are added by own
// kernels.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "models/backend/cuda/ops.h"
#include "models/ops/convolution/cuda_filter.h"
#include "models/ops/convolution/cuda_plan.h"
#include "models/ops/pooling/cuda.h"

namespace kumo::cuda {
namespace {

class Convolution final : public WeightedOp<UnaryOp> {
 public:
  Convolution(CudaEngine& engine, const ConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias), engine_(engine), spec_(spec), filter_(engine, spec) {
    if (spec.bias) {
      engine.ReserveWorkspace(ChannelScratch(engine.ShapeOf(spec.output(), max_batch)));
    }
    if (spec.pool) {
      pool_.emplace(engine, *spec.pool);
      const int64_t bytes = engine.ActivationBytes(spec.output(), max_batch);
      convolved_ = DeviceArray<std::byte>(engine, bytes, "a convolution's values before pooling");
      grad_convolved_ = DeviceArray<std::byte>(engine, bytes, "their gradients");
    }
  }

  bool reads_input() const override { return true; }
  bool reads_output() const override { return pool_.has_value(); }
  int64_t bytes() const override {
    return convolved_.bytes() + grad_convolved_.bytes() + filter_.bytes();
  }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    WeightedOp::Bind(weights, gradients);
    filter_.Bind(weight_, weight_gradient_);
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    void* const convolved = pool_ ? convolved_.data() : output;
    filter_.Load();
    PlanFor(pass.batch).Forward(input, filter_.data(), convolved);
    if (bias_ != nullptr) {
      KUMO_CUDA(engine_, AddBias(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                 bias_, convolved));
    }
    if (pool_) pool_->Forward(pass.batch, convolved, output);
  }

  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    const void* gradient = grad_output;
    if (pool_) {
      pool_->Backward(pass.batch, convolved_.data(), output, grad_output, grad_convolved_.data());
      gradient = grad_convolved_.data();
    }
    ConvolutionPlan& plan = PlanFor(pass.batch);
    if (is_trained()) {
      plan.FilterGradient(input, gradient, filter_.gradient());
      filter_.StoreGradient();
    }
    if (bias_gradient_ != nullptr) {
      KUMO_CUDA(engine_, BiasGradient(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                      gradient, engine_.workspace(), bias_gradient_));
    }
    // The filter is still Forward's.
    if (grad_input != nullptr) plan.InputGradient(filter_.data(), gradient, grad_input);
  }

 private:
  ConvolutionPlan& PlanFor(int batch) {
    return plans_.try_emplace(batch, engine_, spec_, batch).first->second;
  }

  CudaEngine& engine_;
  ConvolutionSpec spec_;
  ConvolutionFilter filter_;
  std::optional<Pooling> pool_;
  DeviceArray<std::byte> convolved_;       // before pooling
  DeviceArray<std::byte> grad_convolved_;  // likewise
  std::map<int, ConvolutionPlan> plans_;   // by batch size
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const ConvolutionSpec& spec, int max_batch) {
  const Shape activations[] = {spec.input, spec.output()};
  KUMO_RETURN_IF_ERROR(spec.pool ? CheckTakes(activations, max_batch, kMostPooledSamples)
                                 : CheckTakes(activations, max_batch));
  return NewOp<Convolution>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
