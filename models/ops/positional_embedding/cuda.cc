// A learned vector for each position, added.
#include <cstddef>
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class PositionalEmbedding final : public UnaryOp {
 public:
  PositionalEmbedding(Engine& engine, const PositionalEmbeddingSpec& spec)
      : engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 1u);
    weight_ = weights[0];
    gradient_ = gradients[0];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, AddPositions(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                    input, weight_, output));
  }

  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    KUMO_CUDA(engine_, PositionsGradient(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                         grad_output, gradient_));
    if (grad_input == nullptr || grad_input == grad_output) return;
    const auto bytes = static_cast<size_t>(engine_.ActivationBytes(spec_.shape, pass.batch));
    KUMO_CUDA(engine_, cudaMemcpyAsync(grad_input, grad_output, bytes, cudaMemcpyDeviceToDevice,
                                       engine_.stream()));
  }

 private:
  Engine& engine_;
  PositionalEmbeddingSpec spec_;
  const float* weight_ = nullptr;
  float* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const PositionalEmbeddingSpec& spec, int) {
  return std::make_unique<PositionalEmbedding>(engine, spec);
}

}  // namespace kumo::cuda
