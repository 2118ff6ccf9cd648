// Fully connected layer. cuBLAS counts columns first, so our arrays are transposed for it:
// activations are [inputs][batch], the weight is [inputs][outputs]. For a layer per position the
// batch is positions x batch if channels are last; else activations are transposed to that order
// and back.
//
// With 16-bit activations the products read a 16-bit copy of weight and bias, made anew for each
// minibatch; gradients of both come out in float32. A product's epilogue adds the bias, or sums its
// gradient. If no epilogue may (MatrixProduct::TakesBias), or cuBLAS has no such product for the
// types, an own kernel does, in a pass over the outputs.
#include <cstdint>
#include <map>
#include <memory>

#include "models/backend/cuda/matrix_product.h"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

cudaDataType_t CudaTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return CUDA_R_32F;
    case Precision::kBf16:
      return CUDA_R_16BF;
    case Precision::kFp16:
      return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

class FullyConnected final : public WeightedOp<UnaryOp> {
 public:
  FullyConnected(CudaEngine& engine, const FullyConnectedSpec& spec, int max_batch)
      : WeightedOp(spec.bias), engine_(engine), spec_(spec), type_(CudaTypeOf(engine.precision())) {
    const int rows = Rows({max_batch});
    if (spec.bias) engine.ReserveWorkspace(ChannelScratch(engine.ShapeOf({spec.outputs}, rows)));
    if (IsMoved()) {
      moved_inputs_ = DeviceArray<float>(engine, spec.inputs * rows, "channels last");
      moved_outputs_ = DeviceArray<float>(engine, spec.outputs * rows, "channels last");
    }
    if (type_ == CUDA_R_32F) return;
    narrow_weight_ = DeviceArray<uint16_t>(engine, spec.inputs * spec.outputs, "16-bit weights");
    if (spec.bias) narrow_bias_ = DeviceArray<uint16_t>(engine, spec.outputs, "16-bit biases");
  }

  bool reads_input() const override { return true; }
  int64_t bytes() const override {
    return narrow_weight_.bytes() + narrow_bias_.bytes() + moved_inputs_.bytes() +
           moved_outputs_.bytes();
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    if (!IsMoved()) return Multiply(pass, input, output);
    Move({pass.batch, spec_.inputs, spec_.positions}, input, moved_inputs_.data());
    Multiply(pass, moved_inputs_.data(), moved_outputs_.data());
    Move({pass.batch, spec_.positions, spec_.outputs}, moved_outputs_.data(), output);
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    if (!IsMoved()) return MultiplyBackward(pass, input, grad_output, grad_input);
    // The moved inputs are still Forward's, and make room for their gradients.
    Move({pass.batch, spec_.outputs, spec_.positions}, grad_output, moved_outputs_.data());
    MultiplyBackward(pass, moved_inputs_.data(), moved_outputs_.data(), nullptr);
    if (grad_input == nullptr) return;
    MultiplyInputs(pass, moved_outputs_.data(), moved_inputs_.data());
    Move({pass.batch, spec_.positions, spec_.inputs}, moved_inputs_.data(), grad_input);
  }

 private:
  struct BiasedProduct {
    MatrixProduct product;
    bool in_epilogue = false;  // the bias is added or its gradient summed
  };
  struct Products {
    BiasedProduct forward;
    BiasedProduct weights;  // the weight's gradient
    MatrixProduct inputs;   // the input's gradient
  };

  int Rows(const Pass& pass) const { return static_cast<int>(pass.batch * spec_.positions); }
  // Whether positions lie behind channels, so that these have to be moved.
  bool IsMoved() const { return spec_.positions > 1 && !engine_.channels_last(); }
  void Move(const Planes& planes, const void* from, void* to) {
    KUMO_CUDA(engine_,
              Transpose(engine_.launch(), Precision::kFp32, from, planes, Precision::kFp32, to));
  }

  void Multiply(const Pass& pass, const void* input, void* output) {
    ProductArrays arrays = {Operand(weight_, narrow_weight_), input, output,
                            Operand(bias_, narrow_bias_)};
    BiasedProduct& forward = products_[pass.batch].forward;
    if (!forward.product) {
      ProductShape shape;
      shape.rows = spec_.outputs;
      shape.columns = Rows(pass);
      shape.depth = spec_.inputs;
      shape.transpose_a = true;
      shape.epilogue = CUBLASLT_EPILOGUE_BIAS;
      shape.operands = type_;
      shape.result = type_;
      forward = Plan(shape, arrays);
    }
    if (!forward.in_epilogue) arrays.bias = nullptr;
    forward.product.Run(engine_, arrays);
    if (bias_ != nullptr && !forward.in_epilogue) {
      KUMO_CUDA(engine_, AddBias(engine_.launch(), OutputShape(pass), bias_, output));
    }
  }

  void MultiplyBackward(const Pass& pass, const void* input, const void* grad_output,
                        void* grad_input) {
    if (is_trained()) TensorGradients(pass, input, grad_output);
    if (grad_input != nullptr) MultiplyInputs(pass, grad_output, grad_input);
  }
  void TensorGradients(const Pass& pass, const void* input, const void* grad_output) {
    ProductArrays arrays = {input, grad_output, weight_gradient_, bias_gradient_};
    BiasedProduct& weights = products_[pass.batch].weights;
    if (!weights.product) {
      ProductShape shape;
      shape.rows = spec_.inputs;
      shape.columns = spec_.outputs;
      shape.depth = Rows(pass);
      shape.transpose_b = true;
      shape.epilogue = CUBLASLT_EPILOGUE_BGRADB;
      shape.operands = type_;
      weights = Plan(shape, arrays);
    }
    if (!weights.in_epilogue) arrays.bias = nullptr;
    weights.product.Run(engine_, arrays);
    if (bias_gradient_ != nullptr && !weights.in_epilogue) {
      KUMO_CUDA(engine_, BiasGradient(engine_.launch(), OutputShape(pass), grad_output,
                                      engine_.workspace(), bias_gradient_));
    }
  }
  void MultiplyInputs(const Pass& pass, const void* grad_output, void* grad_input) {
    Products& products = products_[pass.batch];
    // The 16-bit weight is still Forward's.
    const void* const weight = type_ == CUDA_R_32F
                                   ? static_cast<const void*>(weight_)
                                   : static_cast<const void*>(narrow_weight_.data());
    const ProductArrays inputs = {weight, grad_output, grad_input, nullptr};
    if (!products.inputs) {
      ProductShape shape;
      shape.rows = spec_.inputs;
      shape.columns = Rows(pass);
      shape.depth = spec_.outputs;
      shape.operands = type_;
      shape.result = type_;
      products.inputs = MatrixProduct(engine_, shape, inputs);
    }
    products.inputs.Run(engine_, inputs);
  }

  // A product with the epilogue of `shape`, or without one if that cannot be.
  BiasedProduct Plan(ProductShape shape, ProductArrays arrays) {
    BiasedProduct plan;
    if (MatrixProduct::TakesBias(shape, arrays.bias)) {
      plan.product = MatrixProduct(engine_, shape, arrays);
      plan.in_epilogue = static_cast<bool>(plan.product);
    }
    if (plan.in_epilogue) return plan;
    shape.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    arrays.bias = nullptr;
    plan.product = MatrixProduct(engine_, shape, arrays);
    return plan;
  }
  ActivationShape OutputShape(const Pass& pass) const {
    return engine_.ShapeOf({spec_.outputs}, Rows(pass));
  }
  // A parameter as the products read it: itself, or its 16-bit copy, which is made here.
  const void* Operand(const float* parameter, DeviceArray<uint16_t>& narrow) {
    if (type_ == CUDA_R_32F || parameter == nullptr) return parameter;
    KUMO_CUDA(engine_, Transpose(engine_.launch(), Precision::kFp32, parameter,
                                 {1, 1, narrow.size()}, engine_.precision(), narrow.data()));
    return narrow.data();
  }

  CudaEngine& engine_;
  FullyConnectedSpec spec_;
  cudaDataType_t type_;  // of activations
  DeviceArray<uint16_t> narrow_weight_;
  DeviceArray<uint16_t> narrow_bias_;
  // Transposed arrays: inputs, then their gradients, and outputs or their gradients.
  DeviceArray<float> moved_inputs_;
  DeviceArray<float> moved_outputs_;
  std::map<int, Products> products_;  // by batch size
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const FullyConnectedSpec& spec,
                                   int max_batch) {
  return NewOp<FullyConnected>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
