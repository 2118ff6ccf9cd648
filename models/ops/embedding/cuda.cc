// Vectors looked up by whole numbers.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Embedding final : public Op {
 public:
  Embedding(Engine& engine, const EmbeddingSpec& spec) : engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 1u);
    weight_ = weights[0];
    gradient_ = gradients[0];
  }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    KUMO_CUDA(engine_, Embed(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                             static_cast<const int32_t*>(inputs[0]), weight_, outputs[0]));
  }

  void Backward(const Pass& pass, const Gradients& arrays) override {
    KUMO_CUDA(engine_,
              EmbeddingGradient(engine_.launch(), engine_.ShapeOf(spec_.output(), pass.batch),
                                spec_.vocabulary, static_cast<const int32_t*>(arrays.inputs[0]),
                                arrays.grad_outputs[0], gradient_));
  }

 private:
  Engine& engine_;
  EmbeddingSpec spec_;
  const float* weight_ = nullptr;
  float* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const EmbeddingSpec& spec, int) {
  return std::make_unique<Embedding>(engine, spec);
}

}  // namespace kumo::cuda
