// Convolution by cuDNN, with max pooling of the output if the spec has it. Biases are added by own
// kernels.
//
// With 16-bit activations, cuDNN reads a 16-bit copy of the filter with channels last, made anew
// for each minibatch, and writes such a gradient. In float32 cuDNN reads a copy too if the filter
// is not aligned to 16 bytes: its kernels may need that alignment, and a flat vector does not
// promise it.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "models/backend/cuda/ops.h"
#include "models/ops/convolution/cuda_plan.h"
#include "models/ops/pooling/cuda.h"

namespace kumo::cuda {
namespace {

class Convolution final : public WeightedOp<UnaryOp> {
 public:
  Convolution(Engine& engine, const ConvolutionSpec& spec, int max_batch)
      : WeightedOp(spec.bias), engine_(engine), spec_(spec) {
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
    return convolved_.bytes() + grad_convolved_.bytes() + filter_copy_.bytes() +
           gradient_copy_.bytes();
  }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    WeightedOp::Bind(weights, gradients);
    copies_ = engine_.channels_last() || !IsAligned(weight_) || !IsAligned(weight_gradient_);
    if (!copies_ || filter_copy_.size() > 0) return;
    const int64_t bytes = filter_size() * engine_.element_bytes();
    filter_copy_ = DeviceArray<std::byte>(engine_, bytes, "cuDNN's copies of filters");
    gradient_copy_ = DeviceArray<std::byte>(engine_, bytes, "their gradients");
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    void* const convolved = pool_ ? convolved_.data() : output;
    if (copies_) {
      const Planes planes = Matrices(spec_.channels_per_group(), kernel());
      KUMO_CUDA(engine_, Transpose(engine_.launch(), Precision::kFp32, weight_, planes,
                                   engine_.precision(), filter_copy_.data()));
    }
    PlanFor(pass.batch).Forward(input, filter(), convolved);
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
    if (is_trained()) FilterGradient(plan, input, gradient);
    if (bias_gradient_ != nullptr) {
      KUMO_CUDA(engine_, BiasGradient(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                      gradient, engine_.workspace(), bias_gradient_));
    }
    // The copy is still that of Forward.
    if (grad_input != nullptr) plan.InputGradient(filter(), gradient, grad_input);
  }

 private:
  void FilterGradient(ConvolutionPlan& plan, const void* input, const void* gradient) {
    if (copies_) {
      plan.FilterGradient(input, gradient, gradient_copy_.data());
      const Planes planes = Matrices(kernel(), spec_.channels_per_group());
      KUMO_CUDA(engine_, Transpose(engine_.launch(), engine_.precision(), gradient_copy_.data(),
                                   planes, Precision::kFp32, weight_gradient_));
    } else {
      plan.FilterGradient(input, gradient, weight_gradient_);
    }
  }
  int64_t kernel() const { return int64_t{spec_.kernel_height} * spec_.kernel_width; }
  int64_t filter_size() const { return spec_.outputs * spec_.channels_per_group() * kernel(); }
  const void* filter() const {
    if (copies_) return filter_copy_.data();
    return weight_;
  }
  static bool IsAligned(const float* filter) {
    return reinterpret_cast<uintptr_t>(filter) % 16 == 0;
  }
  // Planes that are transposed between a filter, or its gradient, and the copy.
  Planes Matrices(int64_t rows, int64_t columns) const {
    if (engine_.channels_last()) return {spec_.outputs, rows, columns};
    return {1, 1, filter_size()};
  }
  ConvolutionPlan& PlanFor(int batch) {
    return plans_.try_emplace(batch, engine_, spec_, batch).first->second;
  }

  Engine& engine_;
  ConvolutionSpec spec_;
  bool copies_ = false;  // whether cuDNN works on copies of its own
  // Of 16-bit activations [outputs][kernel][channels of a group], else as the filter is.
  DeviceArray<std::byte> filter_copy_;
  DeviceArray<std::byte> gradient_copy_;
  std::optional<Pooling> pool_;
  DeviceArray<std::byte> convolved_;       // before pooling
  DeviceArray<std::byte> grad_convolved_;  // likewise
  std::map<int, ConvolutionPlan> plans_;   // by batch size
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const ConvolutionSpec& spec, int max_batch) {
  return NewOp<Convolution>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
