#include "models/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "models/backend/cuda/coder.h"
#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/cuda/input_loader.h"
#include "models/backend/cuda/matrix_product.h"
#include "models/backend/cuda/ops.h"
#include "models/backend/cuda/pinned_pool.h"
#include "models/backend/cuda/pinned_staging.h"

namespace kumo {
namespace {

using cuda::CudaEngine;
using cuda::Handle;

using Graph = Handle<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<CudaEngine> engine)
      : engine_(std::move(engine)),
        staging_(*engine_, pool_),
        inputs_(*engine_, pool_),
        coder_(*engine_, pool_, staging_) {}
  ~CudaBackend() override { engine_->Drain(); }

  std::string name() const override {
    return "cuda:" + std::to_string(engine_->options().device) + " (" + engine_->device_name() +
           ")";
  }

  void* Allocate(size_t bytes, const std::string& what) override {
    return engine_->Allocate(bytes, what);
  }
  void Free(void* memory) override {
    engine_->Free(memory);
    std::erase_if(recorded_, [memory](const auto& entry) { return entry.first.state == memory; });
  }
  void Write(const void* from, size_t bytes, void* to) override { staging_.Write(from, bytes, to); }
  Status Read(const void* from, size_t bytes, void* to) override {
    // A copy to memory that is not pinned waits for all that was queued.
    coder_.WaitForMarked();
    if (bytes > 0) {
      KUMO_CUDA(*engine_,
                cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, engine_->stream()));
    }
    return Wait();
  }
  void Copy(const void* from, size_t bytes, void* to) override {
    if (bytes == 0) return;
    KUMO_CUDA(*engine_,
              cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, engine_->stream()));
  }
  void Zero(void* memory, size_t bytes) override {
    if (bytes == 0) return;
    KUMO_CUDA(*engine_, cudaMemsetAsync(memory, 0, bytes, engine_->stream()));
  }
  Status Wait() override { return coder_.Wait(); }

  std::unique_ptr<InputLoader> MakeInputLoader(std::vector<InputField> fields, int) override {
    return cuda::MakeInputLoader(*engine_, staging_, inputs_, std::move(fields));
  }

  void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n, float* to) override {
    // The kernel does not know a chunk's tensors.
    if (codec.of_tensors() != nullptr) {
      std::vector<float> numbers(static_cast<size_t>(n));
      codec.Decode(code, numbers.size(), 0, numbers);
      return Write(numbers.data(), numbers.size() * sizeof(float), to);
    }
    const auto bytes = static_cast<int64_t>(code.size());
    if (packed_.size() < bytes) packed_ = DeviceArray<std::byte>(*engine_, bytes, "a coded chunk");
    Write(code.data(), code.size(), packed_.data());
    KUMO_CUDA(*engine_, cuda::Decode(engine_->launch(), codec, packed_.data(), n, to));
  }
  void DecodeAdd(const Codec& codec, std::span<const std::byte> code, float factor, int64_t n,
                 float* to) override {
    if (decoded_.size() < n) decoded_ = DeviceArray<float>(*engine_, n, "a decoded chunk");
    Decode(codec, code, n, decoded_.data());
    AddTo(factor, decoded_.data(), n, to);
  }
  void Encode(std::span<Encoding> encodings) override { coder_.Encode(encodings); }
  // One thread queues the work of the stream; coding takes a device little time.
  bool codes_beside_steps() const override { return false; }
  void EncodeAt(int mark, std::span<Encoding> encodings, std::function<void()> done) override {
    coder_.EncodeAt(mark, encodings, std::move(done));
  }
  void Mark(int mark) override { coder_.Mark(mark); }
  std::shared_ptr<std::byte> MakeCode(size_t bytes) override { return coder_.MakeCode(bytes); }
  void AddTo(float factor, const float* from, int64_t n, float* to) override {
    KUMO_CUDA(*engine_, cuda::AddTo(engine_->launch(), factor, from, n, to));
  }
  void MeasureGradients(const float* gradients, int64_t n) override {
    const bool scales = engine_->precision() == Precision::kFp16;
    if (!scales && clip_norm_ == 0.0f) return;
    const int sums = cuda::GradientSums(engine_->launch(), n);
    engine_->ReserveWorkspace(static_cast<size_t>(sums) * sizeof(double));
    KUMO_CUDA(*engine_, cuda::MeasureGradients(engine_->launch(), gradients, n, scales,
                                               static_cast<double*>(engine_->workspace()),
                                               engine_->step(), engine_->loss_scale()));
  }
  void ScaleGradients(float* gradients, int64_t n) override {
    KUMO_CUDA(*engine_, cuda::ScaleGradients(engine_->launch(), engine_->step(), n, gradients));
  }
  void OptimiserStep(Segment segment, const StepFactors& factors, const float* gradient, int64_t n,
                     float* weights, float* const* slots) override {
    const cuda::StepBlock* step = engine_->step();
    KUMO_CUDA(*engine_, optimiser_(engine_->launch(),
                                   segment == Segment::kDecayed ? &step->decayed : &step->undecayed,
                                   &step->gradient_factor, factors, gradient, n, weights, slots));
  }

  // cuBLAS counts columns first, so our matrices are transposed for it: to^T = b^T a^T.
  void MultiplyMatrices(const MatrixProductShape& shape, const float* a, const float* b,
                        float* to) override {
    const cuda::ProductArrays arrays = {b, a, to, nullptr};
    cuda::MatrixProduct& product = products_[shape];
    if (!product) {
      cuda::ProductShape transposed;
      transposed.rows = shape.columns;
      transposed.columns = shape.rows;
      transposed.depth = shape.depth;
      transposed.transpose_a = shape.transpose_b;
      transposed.transpose_b = shape.transpose_a;
      product = cuda::MatrixProduct(*engine_, transposed, arrays);
    }
    product.Run(*engine_, arrays);
  }
  void Combine(float p, const float* x, float q, const float* y, int64_t n, float* to) override {
    KUMO_CUDA(*engine_, cuda::Combine(engine_->launch(), p, x, q, y, n, to));
  }
  void Normalise(float epsilon, int64_t n, float* x) override {
    const int sums = cuda::GradientSums(engine_->launch(), n);
    engine_->ReserveWorkspace(static_cast<size_t>(sums + 1) * sizeof(double));
    KUMO_CUDA(*engine_, cuda::Normalise(engine_->launch(), epsilon, n,
                                        static_cast<double*>(engine_->workspace()), x));
  }
  void DirectionOfMatrix(const float* gradient, int64_t n, float* mean, float* to) override {
    const cuda::StepBlock* step = engine_->step();
    KUMO_CUDA(*engine_, cuda::DirectionOfMatrix(engine_->launch(), &step->decayed,
                                                &step->gradient_factor, gradient, n, mean, to));
  }
  void StepMatrix(Segment segment, const StepFactors& factors, float stretch, const float* x,
                  int64_t n, float* weights) override {
    const cuda::StepBlock* step = engine_->step();
    KUMO_CUDA(*engine_,
              cuda::StepMatrix(engine_->launch(),
                               segment == Segment::kDecayed ? &step->decayed : &step->undecayed,
                               &step->gradient_factor, factors, stretch, x, n, weights));
  }

  void SetStep(const StepParameters& step) override {
    cuda::StepBlock block;
    block.seed = step.streams.seed;
    block.partition = step.streams.partition;
    block.round = step.streams.round;
    block.step = step.streams.step;
    block.clip_norm = clip_norm_ = step.clip_norm;
    if (step.optimiser != nullptr) {
      optimiser_ = cuda::FindOptimiserStep(step.optimiser->traits().type);
      block.decayed = step.optimiser->NumbersOf(step.decayed, 1.0f);
      block.undecayed = step.optimiser->NumbersOf(step.undecayed, 1.0f);
    }
    engine_->SetStep(block);
  }
  void Repeat(const StepKey& key, const std::function<void()>& work) override;
  void SetPlace(const std::string* place) override { engine_->set_place(place); }

  std::string DescribeMemory() const override { return engine_->ledger().Describe(8); }

  int64_t ActivationBytes(const Shape& shape, int batch) const override {
    return engine_->ActivationBytes(shape, batch);
  }
  void StoreOutputs(const Shape& shape, int batch, const void* from, float* to) override {
    const int64_t size = shape.size() * batch;
    DeviceArray<float> numbers(*engine_, size, "outputs that are read");
    const cuda::Planes stored = engine_->HostOrder(shape, batch);
    KUMO_CUDA(*engine_, cuda::Transpose(engine_->launch(), engine_->precision(), from,
                                        {stored.count, stored.columns, stored.rows},
                                        Precision::kFp32, numbers.data()));
    (void)Read(numbers.data(), static_cast<size_t>(numbers.bytes()), to);
  }

  bool FusesPooling(const ConvolutionSpec&) const override { return true; }
  bool FusesActivation(Activation activation) const override {
    return activation == Activation::kRelu;
  }
  bool FlatteningMoves(const Shape& shape) const override {
    return engine_->channels_last() && shape.plane() > 1 && shape.channels() > 1;
  }
  Result<std::unique_ptr<Op>> MakeOp(const OpSpec& spec, int max_batch) override {
    return std::visit(
        [&](const auto& op) -> Result<std::unique_ptr<Op>> {
          return cuda::MakeOp(*engine_, op, max_batch);
        },
        spec);
  }
  Result<std::unique_ptr<LossOp>> MakeLoss(const LossSpec& spec, int max_batch) override {
    return std::visit([&](const auto& loss) { return cuda::MakeLoss(*engine_, loss, max_batch); },
                      spec);
  }

 private:
  struct Recorded {
    bool warm = false;  // it ran once: whatever is chosen or allocated at first is
    GraphExec graph;
    const void* workspace = nullptr;  // that the graph uses
  };

  void Queue(const StepKey& key, const std::function<void()>& work);
  void Record(const std::function<void()>& work, GraphExec* graph);

  std::unique_ptr<CudaEngine> engine_;
  cuda::PinnedPool pool_;
  cuda::PinnedStaging staging_;
  cuda::InputBuffers inputs_;
  cuda::Coder coder_;
  cuda::OptimiserStep optimiser_ = nullptr;  // of the steps from now on
  float clip_norm_ = 0;                      // likewise
  std::map<MatrixProductShape, cuda::MatrixProduct> products_;
  std::map<StepKey, Recorded> recorded_;
  DeviceArray<std::byte> packed_;  // the chunk that is being decoded
  DeviceArray<float> decoded_;     // the difference that is being added
};

void CudaBackend::Repeat(const StepKey& key, const std::function<void()>& work) {
  Queue(key, work);
  coder_.Start();
}

// The first time it just runs: cuDNN measures its algorithms then, and memory is allocated. The
// second time it is recorded.
void CudaBackend::Queue(const StepKey& key, const std::function<void()>& work) {
  Recorded& recorded = recorded_[key];
  if (!recorded.warm) {
    work();
    recorded.warm = true;
    return;
  }
  if (!recorded.graph || recorded.workspace != engine_->workspace()) {
    Record(work, &recorded.graph);
    recorded.workspace = engine_->workspace();
  }
  if (recorded.graph) {
    KUMO_CUDA(*engine_, cudaGraphLaunch(recorded.graph.get(), engine_->stream()));
  }
}

void CudaBackend::Record(const std::function<void()>& work, GraphExec* graph) {
  Graph captured;
  if (!KUMO_CUDA(*engine_,
                 cudaStreamBeginCapture(engine_->stream(), cudaStreamCaptureModeThreadLocal))) {
    return;
  }
  work();
  // Also if the work has failed: a stream that is left capturing takes no other call.
  const cudaError_t ended = cudaStreamEndCapture(engine_->stream(), captured.receive());
  if (!engine_->Check(ended, "cudaStreamEndCapture", __FILE__, __LINE__)) return;
  KUMO_CUDA(*engine_, cudaGraphInstantiate(graph->receive(), captured.get(), 0));
}

}  // namespace

Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<CudaEngine> engine, CudaEngine::Make(options));
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(engine)));
}

}  // namespace kumo
