#include "models/backend/cpu/cpu_backend.h"

#include <cstdint>
#include <optional>

#include <glog/logging.h>

#include "models/backend/cpu/ops.h"

namespace kumo {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, Isa isa)
      : engine_{isa,
                KUMO_AT_ISA(isa, kConvolution),
                KUMO_AT_ISA(isa, kElementwise),
                KUMO_AT_ISA(isa, kPooling),
                KUMO_AT_ISA(isa, kBatchNormalisation),
                ThreadPool(threads - 1)} {}

  std::string name() const override { return "cpu"; }

  int64_t ActivationSize(const Shape& shape, int batch) const override {
    return shape.size() * cpu::LaneStride(batch);
  }
  void LoadInputs(const Shape& shape, int batch, const float* from, float* to) override {
    engine_.elementwise.transpose(from, batch, shape.size(), cpu::LaneStride(batch), to);
  }
  void StoreOutputs(const Shape& shape, int batch, const float* from, float* to) override {
    const int64_t lanes = cpu::LaneStride(batch);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t i = 0; i < shape.size(); ++i) to[n * shape.size() + i] = from[i * lanes + n];
    }
  }

  std::unique_ptr<Op> MakeConvolution(const ConvolutionSpec& spec,
                                      const std::optional<PoolingSpec>& pool,
                                      int max_batch) override {
    return cpu::MakeConvolution(engine_, spec, pool, max_batch);
  }
  std::unique_ptr<Op> MakeFullyConnected(const FullyConnectedSpec& spec, int) override {
    return cpu::MakeFullyConnected(engine_, spec);
  }
  std::unique_ptr<Op> MakeMaxPooling(const PoolingSpec& spec, int max_batch) override {
    return cpu::MakeMaxPooling(engine_, spec, max_batch);
  }
  std::unique_ptr<Op> MakeAveragePooling(const PoolingSpec& spec, int) override {
    return cpu::MakeAveragePooling(engine_, spec);
  }
  std::unique_ptr<Op> MakeActivation(Activation activation, const Shape& shape) override {
    return cpu::MakeActivation(engine_, activation, shape);
  }
  std::unique_ptr<Op> MakeDropout(const DropoutSpec& spec, int max_batch) override {
    return cpu::MakeDropout(engine_, spec, max_batch);
  }
  std::unique_ptr<Op> MakeBatchNormalisation(const BatchNormalisationSpec& spec, int) override {
    return cpu::MakeBatchNormalisation(engine_, spec);
  }
  std::unique_ptr<LossOp> MakeSoftmaxCrossEntropy(const Shape& shape, int) override {
    return cpu::MakeSoftmaxCrossEntropy(shape);
  }

 private:
  cpu::Engine engine_;
};

}  // namespace

namespace cpu {

std::vector<Range> EvenPieces(int64_t n, int64_t most) {
  const int64_t count = (n + most - 1) / most;
  std::vector<Range> pieces;
  for (int64_t i = 0; i < count; ++i) pieces.push_back({n * i / count, n * (i + 1) / count});
  return pieces;
}

}  // namespace cpu

std::unique_ptr<Backend> MakeCpuBackend(int threads, Isa isa) {
  CHECK_GE(threads, 1);
  return std::make_unique<CpuBackend>(threads, isa);
}

}  // namespace kumo
