#include "models/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include <glog/logging.h>

#include "common/base/buffer.h"
#include "common/codec/contribution_encoder.h"
#include "models/backend/cpu/input_loader.h"
#include "models/backend/cpu/matrix_product.h"
#include "models/backend/cpu/ops.h"
#include "models/backend/host_memory.h"

namespace kumo {
namespace {

// Longer than the parts of a step that one thread does alone, and far below a scheduler's slice.
constexpr std::chrono::microseconds kAwake{100};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, Isa isa)
      : engine_{isa, KUMO_AT_ISA(isa, kElementwise), ThreadPool(threads - 1, kAwake), host_,
                threads} {}
  // Backend whose arrays are `elsewhere`, and whose threads are not started.
  CpuBackend(int threads, Isa isa, DeviceMemory* elsewhere)
      : engine_{isa, KUMO_AT_ISA(isa, kElementwise), ThreadPool(0), *elsewhere, threads} {}

  std::string name() const override { return "cpu"; }

  void* Allocate(size_t bytes, const std::string& what) override {
    return engine_.memory.Allocate(bytes, what);
  }
  void Free(void* memory) override { engine_.memory.Free(memory); }
  std::string DescribeMemory() const override { return host_.ledger().Describe(8); }
  void Write(const void* from, size_t bytes, void* to) override { Copy(from, bytes, to); }
  // From a failure on nothing is done: the array that could not be had is missing.
  Status Read(const void* from, size_t bytes, void* to) override {
    Copy(from, bytes, to);
    return host_.failure();
  }
  void Copy(const void* from, size_t bytes, void* to) override {
    if (bytes > 0 && host_.failure().ok()) std::memcpy(to, from, bytes);
  }
  void Zero(void* memory, size_t bytes) override {
    if (bytes > 0 && host_.failure().ok()) std::memset(memory, 0, bytes);
  }
  Status Wait() override { return host_.failure(); }

  std::unique_ptr<InputLoader> MakeInputLoader(std::vector<InputField> fields,
                                               int max_batch) override {
    return cpu::MakeInputLoader(*this, engine_, std::move(fields), max_batch);
  }

  void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n, float* to) override {
    if (!host_.failure().ok()) return;
    codec.Decode(code, static_cast<size_t>(n), 0, {to, static_cast<size_t>(n)});
  }
  void DecodeAdd(const Codec& codec, std::span<const std::byte> code, float factor, int64_t n,
                 float* to) override {
    if (!host_.failure().ok()) return;
    codec.DecodeAdd(code, static_cast<size_t>(n), 0, factor, {to, static_cast<size_t>(n)});
  }
  void Encode(std::span<Encoding> encodings) override {
    for (Encoding& encoding : encodings) {
      const auto n = static_cast<size_t>(encoding.n);
      std::span<float> residual;
      if (encoding.residual != nullptr) residual = {encoding.residual, n};
      encoding.first_bad = encoder_.Encode(*encoding.codec, encoding.context, {encoding.x, n},
                                           encoding.minus, residual, encoding.code);
    }
    encoder_.Finish();
  }
  void EncodeAt(int mark, std::span<Encoding> encodings, std::function<void()> done) override {
    CHECK(marked_.emplace(mark, Marked{encodings, std::move(done)}).second) << "mark " << mark;
  }
  void Mark(int mark) override {
    const auto found = marked_.find(mark);
    if (found == marked_.end()) return;
    const Marked marked = std::move(found->second);
    marked_.erase(found);
    Encode(marked.encodings);
    marked.done();
  }
  bool codes_beside_steps() const override { return true; }
  std::shared_ptr<std::byte> MakeCode(size_t bytes) override {
    const auto code = std::make_shared<Buffer<std::byte>>(bytes);
    return {code, code->data()};
  }
  void AddTo(float factor, const float* from, int64_t n, float* to) override {
    for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
  }
  void MeasureGradients(const float* gradients, int64_t n) override {
    const auto limit = static_cast<double>(engine_.step.clip_norm);
    engine_.gradient_factor = 1;
    if (limit <= 0) return;
    const double norm = std::sqrt(engine_.elementwise.sum_of_squares(gradients, n));
    // A norm that is no number leaves the gradients as they are: who looks for such finds them.
    if (std::isfinite(norm) && norm > limit) {
      engine_.gradient_factor = static_cast<float>(limit / norm);
    }
  }
  void ScaleGradients(float* gradients, int64_t n) override {
    if (engine_.gradient_factor == 1.0f) return;
    for (int64_t i = 0; i < n; ++i) gradients[i] *= engine_.gradient_factor;
  }
  void OptimiserStep(Segment segment, const StepFactors& factors, const float* gradient, int64_t n,
                     float* weights, float* const* slots) override {
    const StepParameters& step = engine_.step;
    const auto size = static_cast<size_t>(n);
    step.optimiser->Step(InfoOf(segment, factors), engine_.gradient_factor, {gradient, size},
                         {weights, size}, {weights, size}, slots);
  }

  void MultiplyMatrices(const MatrixProductShape& shape, const float* a, const float* b,
                        float* to) override {
    const int64_t a_row = shape.transpose_a ? shape.rows : shape.depth;
    const int64_t b_row = shape.transpose_b ? shape.depth : shape.columns;
    engine_.ParallelPieces(shape.rows, [&](int64_t begin, int64_t end) {
      cpu::MultiplyRows(
          end - begin, shape.columns, shape.depth,
          {shape.transpose_a ? a + begin : a + begin * a_row, shape.transpose_a ? 'T' : 'N', a_row},
          {b, shape.transpose_b ? 'T' : 'N', b_row}, false, to + begin * shape.columns,
          shape.columns);
    });
  }
  void Combine(float p, const float* x, float q, const float* y, int64_t n, float* to) override {
    for (int64_t i = 0; i < n; ++i) to[i] = p * x[i] + q * y[i];
  }
  void Normalise(float epsilon, int64_t n, float* x) override {
    const double norm = std::sqrt(engine_.elementwise.sum_of_squares(x, n));
    const auto factor = static_cast<float>(1.0 / (norm + static_cast<double>(epsilon)));
    for (int64_t i = 0; i < n; ++i) x[i] *= factor;
  }
  void DirectionOfMatrix(const float* gradient, int64_t n, float* mean, float* to) override {
    const auto size = static_cast<size_t>(n);
    engine_.step.optimiser->DirectionOfMatrix(engine_.step.decayed, engine_.gradient_factor,
                                              {gradient, size}, {mean, size}, {to, size});
  }
  void StepMatrix(Segment segment, const StepFactors& factors, float stretch, const float* x,
                  int64_t n, float* weights) override {
    const auto size = static_cast<size_t>(n);
    engine_.step.optimiser->StepMatrix(InfoOf(segment, factors), stretch, {x, size},
                                       {weights, size});
  }

  void SetStep(const StepParameters& step) override { engine_.step = step; }
  void Repeat(const StepKey&, const std::function<void()>& work) override {
    if (!host_.failure().ok()) return marked_.clear();
    work();
    CHECK(marked_.empty()) << "the step did not come to mark " << marked_.begin()->first;
  }
  void SetPlace(const std::string*) override {}

  int64_t ActivationBytes(const Shape& shape, int batch) const override {
    is_laid_out_ = true;
    return shape.size() * engine_.Lanes(batch) * static_cast<int64_t>(sizeof(float));
  }
  void StoreOutputs(const Shape& shape, int batch, const void* from, float* to) override {
    const auto* const numbers = static_cast<const float*>(from);
    const int64_t lanes = engine_.Lanes(batch);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t i = 0; i < shape.size(); ++i) to[n * shape.size() + i] = numbers[i * lanes + n];
    }
  }

  bool FusesActivation(Activation) const override { return false; }
  bool FusesPooling(const ConvolutionSpec& convolution) const override {
    return cpu::FusesPooling(convolution);
  }
  bool FlatteningMoves(const Shape&) const override { return false; }
  Result<std::unique_ptr<Op>> MakeOp(const OpSpec& spec, int max_batch) override {
    return std::visit(
        [&](const auto& op) -> Result<std::unique_ptr<Op>> {
          NeedPadding(cpu::PaddingOf(op));
          return cpu::MakeOp(engine_, op, max_batch);
        },
        spec);
  }
  void TakeShared() override { engine_.Scratch(); }
  Result<std::unique_ptr<LossOp>> MakeLoss(const LossSpec& spec, int max_batch) override {
    return std::visit([&](const auto& loss) { return cpu::MakeLoss(engine_, loss, max_batch); },
                      spec);
  }

 private:
  StepInfo InfoOf(Segment segment, const StepFactors& factors) const {
    const StepParameters& step = engine_.step;
    StepInfo info = segment == Segment::kDecayed ? step.decayed : step.undecayed;
    info.factors = factors;
    return info;
  }
  void NeedPadding(cpu::Padding least) {
    CHECK(least <= engine_.padding || !is_laid_out_)
        << "an op wants another layout than arrays have";
    engine_.padding = std::max(engine_.padding, least);
  }

  struct Marked {  // what is to be coded at a mark of the next step
    std::span<Encoding> encodings;
    std::function<void()> done;
  };

  HostMemory host_;
  cpu::CpuEngine engine_;
  ContributionEncoder encoder_;
  std::map<int, Marked> marked_;
  mutable bool is_laid_out_ = false;  // arrays have been sized
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(int threads, Isa isa) {
  CHECK_GE(threads, 1);
  return std::make_unique<CpuBackend>(threads, isa);
}

std::unique_ptr<Backend> MakeCpuBackendIn(DeviceMemory* memory, int threads) {
  CHECK_GE(threads, 1);
  return std::make_unique<CpuBackend>(threads, DetectIsa(), memory);
}

}  // namespace kumo
