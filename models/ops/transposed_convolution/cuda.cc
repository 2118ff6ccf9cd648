// Transposed convolution by cuDNN: the passes of the convolution that goes from the output to the
// input, in each other's place. Biases are added by own kernels.
#include <cstdint>
#include <map>
#include <memory>

#include "models/backend/cuda/ops.h"
#include "models/ops/convolution/cuda_filter.h"
#include "models/ops/convolution/cuda_plan.h"

namespace kumo::cuda {
namespace {

class TransposedConvolution final : public WeightedOp<UnaryOp> {
 public:
  TransposedConvolution(CudaEngine& engine, const TransposedConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias), engine_(engine), spec_(spec), filter_(engine, spec.convolution) {
    if (spec.bias) {
      engine.ReserveWorkspace(ChannelScratch(engine.ShapeOf(spec.output(), max_batch)));
    }
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return filter_.bytes(); }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    WeightedOp::Bind(weights, gradients);
    filter_.Bind(weight_, weight_gradient_);
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    filter_.Load();
    PlanFor(pass.batch).InputGradient(filter_.data(), input, output);
    if (bias_ != nullptr) {
      KUMO_CUDA(engine_, AddBias(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                 bias_, output));
    }
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    ConvolutionPlan& plan = PlanFor(pass.batch);
    if (is_trained()) {
      plan.FilterGradient(grad_output, input, filter_.gradient());
      filter_.StoreGradient();
    }
    if (bias_gradient_ != nullptr) {
      KUMO_CUDA(engine_, BiasGradient(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                      grad_output, engine_.workspace(), bias_gradient_));
    }
    // The filter is still Forward's.
    if (grad_input != nullptr) plan.Forward(grad_output, filter_.data(), grad_input);
  }

 private:
  ConvolutionPlan& PlanFor(int batch) {
    return plans_.try_emplace(batch, engine_, spec_.convolution, batch).first->second;
  }

  CudaEngine& engine_;
  TransposedConvolutionSpec spec_;
  ConvolutionFilter filter_;
  std::map<int, ConvolutionPlan> plans_;  // by batch size
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const TransposedConvolutionSpec& spec,
                                   int max_batch) {
  const Shape activations[] = {spec.convolution.input, spec.convolution.output()};
  KUMO_RETURN_IF_ERROR(CheckTakes(activations, max_batch));
  return NewOp<TransposedConvolution>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
