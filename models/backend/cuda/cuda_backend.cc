#include "models/backend/cuda/cuda_backend.h"

#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include <glog/logging.h>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/ops.h"
#include "models/backend/cuda/pinned_pool.h"
#include "models/backend/cuda/staging.h"

namespace kumo {
namespace {

using cuda::Engine;
using cuda::Handle;

using Graph = Handle<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;

using StepKernel = cudaError_t (*)(const cuda::Launch&, const StepNumbers*, const float*,
                                   const float*, int64_t, float*, float* const*);

StepKernel KernelOf(std::string_view optimiser) {
  if (optimiser == "sgd") return cuda::SgdStep;
  if (optimiser == "momentum") return cuda::MomentumStep;
  if (optimiser == "nesterov") return cuda::NesterovStep;
  if (optimiser == "adam") return cuda::AdamStep;
  if (optimiser == "adamw") return cuda::AdamWStep;
  LOG(FATAL) << "the CUDA backend has no optimiser " << optimiser;
}

// A data set on the device. Its parts are the backend's to use.
struct CudaSamples final : public DeviceSamples {
  int64_t bytes() const override { return pixels.bytes() + labels.bytes(); }

  Shape shape;
  float scale = 1;
  DeviceArray<uint8_t> pixels;
  DeviceArray<uint8_t> labels;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)), staging_(*engine_, pool_), inputs_(*engine_, pool_) {}
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
    if (bytes == 0) return engine_->Wait();
    KUMO_CUDA(*engine_,
              cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, engine_->stream()));
    return engine_->Wait();
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
  Status Wait() override {
    const Status status = engine_->Wait();
    for (const Encoded& encoded : encoded_) {
      for (size_t i = 0; i < encoded.encodings.size(); ++i) {
        encoded.encodings[i].first_bad = FirstBad(encoded.found()[i]);
      }
    }
    encoded_.clear();
    return status;
  }

  std::unique_ptr<DeviceSamples> KeepSamples(const Shape& shape, std::span<const uint8_t> pixels,
                                             std::span<const uint8_t> labels, float scale,
                                             int64_t reserve) override {
    // As much again is left to the libraries' workspace.
    const size_t bytes = pixels.size() + labels.size();
    if (engine_->FreeBytes() / 2 < bytes + static_cast<size_t>(reserve)) return nullptr;
    auto samples = std::make_unique<CudaSamples>();
    samples->shape = shape;
    samples->scale = scale;
    samples->pixels = cuda::TryArray<uint8_t>(*engine_, std::ssize(pixels), "the data set");
    samples->labels =
        cuda::TryArray<uint8_t>(*engine_, std::ssize(labels), "the data set's labels");
    if (samples->pixels.empty() || samples->labels.empty()) return nullptr;
    Write(pixels.data(), pixels.size(), samples->pixels.data());
    Write(labels.data(), labels.size(), samples->labels.data());
    return samples;
  }
  void LoadSamples(const DeviceSamples& samples, std::span<const int64_t> indices, void* inputs,
                   int32_t* labels) override {
    const auto& kept = static_cast<const CudaSamples&>(samples);
    const auto batch = static_cast<int64_t>(indices.size());
    if (indices_.size() < batch) {
      indices_ = DeviceArray<int64_t>(*engine_, batch, "a minibatch's indices");
    }
    Write(indices.data(), indices.size_bytes(), indices_.data());
    KUMO_CUDA(*engine_,
              cuda::Gather(engine_->launch(), engine_->ShapeOf(kept.shape, static_cast<int>(batch)),
                           kept.pixels.data(), kept.labels.data(), kept.scale, indices_.data(),
                           inputs, labels));
  }

  void Decode(const Codec& codec, std::span<const std::byte> code, int64_t n, float* to) override {
    std::byte* const packed = Packed(code.size());
    Write(code.data(), code.size(), packed);
    KUMO_CUDA(*engine_, cuda::Decode(engine_->launch(), codec.id(), packed, n, to));
  }
  void Encode(std::span<Encoding> encodings) override;
  std::shared_ptr<std::byte> MakeCode(size_t bytes) override;
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
  void OptimiserStep(Segment segment, const float* gradient, int64_t n, float* weights,
                     float* const* slots) override {
    const cuda::StepBlock* step = engine_->step();
    KUMO_CUDA(*engine_, optimiser_(engine_->launch(),
                                   segment == Segment::kDecayed ? &step->decayed : &step->undecayed,
                                   &step->gradient_factor, gradient, n, weights, slots));
  }

  void SetStep(const StepParameters& step) override {
    cuda::StepBlock block;
    block.seed = step.streams.seed;
    block.partition = step.streams.partition;
    block.round = step.streams.round;
    block.step = step.streams.step;
    block.clip_norm = clip_norm_ = step.clip_norm;
    if (step.optimiser != nullptr) {
      optimiser_ = KernelOf(step.optimiser->type());
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
  void LoadInputs(const Shape& shape, int batch, const float* from, void* to) override {
    const size_t bytes = static_cast<size_t>(shape.size() * batch) * sizeof(float);
    const void* const sent = inputs_.Send(from, bytes);
    if (sent == nullptr) return;
    KUMO_CUDA(*engine_, cuda::Transpose(engine_->launch(), Precision::kFp32, sent,
                                        MatricesOf(shape, batch), engine_->precision(), to));
    inputs_.Done();
  }
  void StoreOutputs(const Shape& shape, int batch, const void* from, float* to) override {
    const int64_t size = shape.size() * batch;
    DeviceArray<float> numbers(*engine_, size, "outputs that are read");
    const cuda::Planes stored = MatricesOf(shape, batch);
    KUMO_CUDA(*engine_, cuda::Transpose(engine_->launch(), engine_->precision(), from,
                                        {stored.count, stored.columns, stored.rows},
                                        Precision::kFp32, numbers.data()));
    (void)Read(numbers.data(), static_cast<size_t>(numbers.bytes()), to);
  }

  bool FusesActivation(Activation activation) const override {
    return activation == Activation::kRelu;
  }
  std::unique_ptr<Op> MakeConvolution(const ConvolutionSpec& spec,
                                      const std::optional<PoolingSpec>& pool,
                                      int max_batch) override {
    return cuda::MakeConvolution(*engine_, spec, pool, max_batch);
  }
  std::unique_ptr<Op> MakeFullyConnected(const FullyConnectedSpec& spec, int max_batch) override {
    return cuda::MakeFullyConnected(*engine_, spec, max_batch);
  }
  std::unique_ptr<Op> MakeMaxPooling(const PoolingSpec& spec, int) override {
    return cuda::MakeMaxPooling(*engine_, spec);
  }
  std::unique_ptr<Op> MakeAveragePooling(const PoolingSpec& spec, int) override {
    return cuda::MakeAveragePooling(*engine_, spec);
  }
  std::unique_ptr<Op> MakeActivation(Activation activation, const Shape& shape) override {
    return cuda::MakeActivation(*engine_, activation, shape);
  }
  std::unique_ptr<Op> MakeFlatten(const Shape& shape) override {
    return cuda::MakeFlatten(*engine_, shape);
  }
  std::unique_ptr<Op> MakeDropout(const DropoutSpec& spec, int) override {
    return cuda::MakeDropout(*engine_, spec);
  }
  std::unique_ptr<Op> MakeBatchNormalisation(const BatchNormalisationSpec& spec,
                                             int max_batch) override {
    return cuda::MakeBatchNormalisation(*engine_, spec, max_batch);
  }
  std::unique_ptr<LossOp> MakeSoftmaxCrossEntropy(const Shape& shape, int max_batch) override {
    return cuda::MakeSoftmaxCrossEntropy(*engine_, shape, max_batch);
  }

 private:
  // A contribution that is being encoded.
  struct Encoded {
    std::span<Encoding> encodings;
    std::shared_ptr<std::byte> memory;  // pinned: the first bad position of each

    unsigned long long* found() const {
      return reinterpret_cast<unsigned long long*>(memory.get());
    }
  };
  struct Recorded {
    bool warm = false;  // it ran once: whatever is chosen or allocated at first is
    GraphExec graph;
    const void* workspace = nullptr;  // that the graph uses
  };
  static constexpr unsigned long long kNone = std::numeric_limits<unsigned long long>::max();

  static int64_t FirstBad(unsigned long long found) {
    return found == kNone ? -1 : static_cast<int64_t>(found);
  }
  // The host's order of an array, to be transposed to the device's.
  cuda::Planes MatricesOf(const Shape& shape, int batch) const {
    if (engine_->channels_last()) return {batch, shape.channels, shape.plane()};
    return {1, 1, shape.size() * batch};
  }
  std::byte* Packed(size_t bytes);
  void QueueEncoders(std::span<const Encoding> encodings, const std::vector<size_t>& places,
                     std::byte* packed, unsigned long long* found);
  void Record(const std::function<void()>& work, GraphExec* graph);

  std::unique_ptr<Engine> engine_;
  cuda::PinnedPool pool_;
  cuda::Staging staging_;
  cuda::InputBuffers inputs_;
  StepKernel optimiser_ = nullptr;  // of the steps from now on
  float clip_norm_ = 0;             // likewise
  std::map<StepKey, Recorded> recorded_;
  std::vector<Encoded> encoded_;
  DeviceArray<int64_t> indices_;       // of the minibatch that is loaded
  DeviceArray<std::byte> packed_;      // of the contribution or chunk that is being coded
  DeviceArray<cuda::EncodeJob> jobs_;  // of that contribution
};

// Work in order uses it one after the other, so it may only be replaced when nothing is queued.
std::byte* CudaBackend::Packed(size_t bytes) {
  if (packed_.size() < static_cast<int64_t>(bytes)) {
    (void)engine_->Wait();
    packed_ = DeviceArray<std::byte>(*engine_, static_cast<int64_t>(bytes), "coded chunks");
  }
  return packed_.data();
}

std::shared_ptr<std::byte> CudaBackend::MakeCode(size_t bytes) {
  if (!engine_->Ready()) return nullptr;
  std::shared_ptr<std::byte> code = pool_.Take(bytes);
  if (!code) {
    engine_->Remember(ResourceExhausted("no host memory could be pinned for contributions"));
  }
  return code;
}

// Codes lie in the device's memory as they do in the host's, so that those that are neighbours
// there cross the bus together; in front of them the first bad positions.
void CudaBackend::Encode(std::span<Encoding> encodings) {
  if (encodings.empty()) return;
  constexpr size_t kAlign = 64;
  const size_t found_bytes = encodings.size() * sizeof(unsigned long long);
  Encoded encoded{encodings, MakeCode(found_bytes)};
  if (!engine_->ok()) return;
  std::fill_n(encoded.found(), encodings.size(), kNone);

  struct Run {
    std::byte* to;
    size_t place;
    size_t bytes;
  };
  std::vector<Run> runs;
  std::vector<size_t> places;
  size_t end = found_bytes;
  for (const Encoding& encoding : encodings) {
    const std::span<std::byte> code = encoding.code;
    if (runs.empty() || code.data() != runs.back().to + runs.back().bytes || end % 8 != 0) {
      end = (end + kAlign - 1) / kAlign * kAlign;
      runs.push_back({code.data(), end, 0});
    }
    places.push_back(end);
    runs.back().bytes += code.size();
    end += code.size();
  }
  std::byte* const packed = Packed(end);
  auto* const found = reinterpret_cast<unsigned long long*>(packed);
  KUMO_CUDA(*engine_, cudaMemsetAsync(found, 0xFF, found_bytes, engine_->stream()));
  QueueEncoders(encodings, places, packed, found);
  for (const Run& run : runs) {
    KUMO_CUDA(*engine_, cudaMemcpyAsync(run.to, packed + run.place, run.bytes,
                                        cudaMemcpyDeviceToHost, engine_->stream()));
  }
  KUMO_CUDA(*engine_, cudaMemcpyAsync(encoded.found(), found, found_bytes, cudaMemcpyDeviceToHost,
                                      engine_->stream()));
  encoded_.push_back(std::move(encoded));
}

// One kernel for each codec that there is.
void CudaBackend::QueueEncoders(std::span<const Encoding> encodings,
                                const std::vector<size_t>& places, std::byte* packed,
                                unsigned long long* found) {
  struct Group {
    std::vector<cuda::EncodeJob> jobs;
    int64_t buckets = 0;
  };
  std::map<CodecId, Group> groups;
  for (size_t i = 0; i < encodings.size(); ++i) {
    const Encoding& e = encodings[i];
    Group& group = groups[e.codec->id()];
    group.jobs.push_back(
        {e.x, e.minus, e.residual, e.n, packed + places[i], found + i, group.buckets});
    group.buckets += (e.n + int64_t{Codec::kBucket} - 1) / int64_t{Codec::kBucket};
  }
  if (jobs_.size() < std::ssize(encodings)) {
    jobs_ = DeviceArray<cuda::EncodeJob>(*engine_, std::ssize(encodings), "what is to be coded");
  }
  cuda::EncodeJob* jobs = jobs_.data();
  for (const auto& [codec, group] : groups) {
    Write(group.jobs.data(), group.jobs.size() * sizeof(cuda::EncodeJob), jobs);
    KUMO_CUDA(*engine_, cuda::Encode(engine_->launch(), codec, jobs,
                                     static_cast<int>(group.jobs.size()), group.buckets));
    jobs += group.jobs.size();
  }
}

// The first time it just runs: cuDNN measures its algorithms then, and memory is allocated. The
// second time it is recorded.
void CudaBackend::Repeat(const StepKey& key, const std::function<void()>& work) {
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
  // Whatever has failed: a stream that is left capturing takes no other call.
  const cudaError_t ended = cudaStreamEndCapture(engine_->stream(), captured.receive());
  if (!engine_->Check(ended, "cudaStreamEndCapture", __FILE__, __LINE__)) return;
  KUMO_CUDA(*engine_, cudaGraphInstantiate(graph->receive(), captured.get(), 0));
}

}  // namespace

Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Make(options));
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(engine)));
}

}  // namespace kumo
