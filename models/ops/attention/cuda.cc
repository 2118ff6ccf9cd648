// Attention over a sequence, without its weights in memory: backward they are made anew from the
// logarithms of their sums.
#include <cmath>
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Attention final : public UnaryOp {
 public:
  Attention(Engine& engine, const AttentionSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        log_sums_(engine, max_batch * spec.heads * spec.positions, "attention's sums"),
        along_(engine, max_batch * spec.heads * spec.positions, "attention's sums") {}

  bool reads_input() const override { return true; }
  bool reads_output() const override { return true; }
  int64_t bytes() const override { return log_sums_.bytes() + along_.bytes(); }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, Attend(engine_.launch(), NumbersOf(pass), input, output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, AttendBackward(engine_.launch(), NumbersOf(pass), input, output, grad_output,
                                      grad_input));
  }

 private:
  AttentionNumbers NumbersOf(const Pass& pass) {
    AttentionNumbers numbers;
    numbers.precision = engine_.precision();
    numbers.batch = pass.batch;
    numbers.channels = spec_.channels;
    numbers.positions = spec_.positions;
    numbers.heads = spec_.heads;
    numbers.causal = spec_.causal;
    numbers.scale = 1.0f / std::sqrt(static_cast<float>(spec_.per_head()));
    if (spec_.dropout > 0 && pass.training) numbers.step = engine_.step();
    numbers.dropout = spec_.dropout;
    numbers.layer = spec_.layer;
    numbers.log_sums = log_sums_.data();
    numbers.along = along_.data();
    return numbers;
  }

  Engine& engine_;
  AttentionSpec spec_;
  DeviceArray<float> log_sums_;
  DeviceArray<float> along_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const AttentionSpec& spec, int max_batch) {
  if (spec.per_head() > kMostOfHead) {
    return InvalidArgument("network.device=cuda has attention of heads of at most " +
                           std::to_string(kMostOfHead) + " channels, not " +
                           std::to_string(spec.per_head()));
  }
  return std::unique_ptr<Op>(std::make_unique<Attention>(engine, spec, max_batch));
}

}  // namespace kumo::cuda
