// Fully connected layers. To cuBLAS, which counts columns first, our arrays are transposed:
// activations are [inputs][batch], the weight [inputs][outputs].
#include <cstdint>
#include <map>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/matrix_product.h"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class FullyConnected final : public Op {
 public:
  FullyConnected(Engine& engine, const FullyConnectedSpec& spec) : engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.bias ? 2u : 1u);
    weight_ = weights[0];
    weight_gradient_ = gradients[0];
    bias_ = spec_.bias ? weights[1] : nullptr;
    bias_gradient_ = spec_.bias ? gradients[1] : nullptr;
    products_.clear();  // they know the biases' places
  }

  void Forward(const Pass& pass, const float* input, float* output) override {
    MatrixProduct& product = products_[pass.batch].forward;
    if (!product) {
      const ProductShape shape = {
          spec_.outputs, pass.batch,
          spec_.inputs,  true,
          false,         bias_ != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT};
      product = MatrixProduct(engine_, shape, weight_, input, output, bias_);
    }
    product.Run(engine_, weight_, input, output);
  }

  void Backward(const Pass& pass, const float* input, const float*, const float* grad_output,
                float* grad_input) override {
    Products& products = products_[pass.batch];
    if (!products.weights) {
      const ProductShape shape = {
          spec_.inputs,
          spec_.outputs,
          pass.batch,
          false,
          true,
          bias_gradient_ != nullptr ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT};
      products.weights =
          MatrixProduct(engine_, shape, input, grad_output, weight_gradient_, bias_gradient_);
    }
    products.weights.Run(engine_, input, grad_output, weight_gradient_);
    if (grad_input == nullptr) return;
    if (!products.inputs) {
      const ProductShape shape = {spec_.inputs, pass.batch, spec_.outputs, false, false};
      products.inputs = MatrixProduct(engine_, shape, weight_, grad_output, grad_input, nullptr);
    }
    products.inputs.Run(engine_, weight_, grad_output, grad_input);
  }

 private:
  struct Products {
    MatrixProduct forward;
    MatrixProduct weights;  // the weight's gradient, and the bias's
    MatrixProduct inputs;   // the input's gradient
  };

  Engine& engine_;
  FullyConnectedSpec spec_;
  std::map<int, Products> products_;  // by batch size
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeFullyConnected(Engine& engine, const FullyConnectedSpec& spec) {
  return std::make_unique<FullyConnected>(engine, spec);
}

}  // namespace kumo::cuda
