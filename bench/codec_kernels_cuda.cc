#include <cuda_runtime_api.h>

#include "bench/codec_kernels.h"
#include "models/backend/cuda/handle.h"
#include "models/backend/cuda/kernels.h"

namespace kumo {
namespace {

template <typename T>
cudaError_t Free(T* memory) {
  return cudaFree(memory);
}
template <typename T>
using Memory = cuda::Handle<T*, Free<T>>;

class CudaCodecKernels final : public CodecKernels {
 public:
  explicit CudaCodecKernels(std::span<const float> numbers)
      : n_(static_cast<int64_t>(numbers.size())) {
    int device = 0;
    Check(cudaGetDevice(&device));
    Check(cudaDeviceGetAttribute(&launch_.multiprocessors, cudaDevAttrMultiProcessorCount, device));
    Allocate(numbers.size_bytes(), &x_);
    Allocate(numbers.size_bytes(), &residual_);
    Allocate(numbers.size_bytes(), &to_);
    Allocate(numbers.size_bytes() + 4096, &code_);  // no code is longer
    Allocate(sizeof(unsigned long long), &first_bad_);
    Allocate(2 * sizeof(cuda::EncodeJob), &jobs_);
    if (!status_.ok()) return;
    Check(cudaMemcpy(x_.get(), numbers.data(), numbers.size_bytes(), cudaMemcpyHostToDevice));
    Check(cudaMemset(residual_.get(), 0, numbers.size_bytes()));
    Check(cudaMemset(first_bad_.get(), 0xFF, sizeof(unsigned long long)));
  }

  void Encode(const Codec& codec, bool feedback) override {
    if (!status_.ok()) return;
    if (jobs_are_of_ != &codec) MakeJobs(codec);
    const auto group = static_cast<int64_t>(codec.group());
    Check(cuda::Encode(launch_, codec, jobs_.get() + (feedback ? 1 : 0), 1,
                       (n_ + group - 1) / group));
  }
  void Decode(const Codec& codec) override {
    if (status_.ok()) Check(cuda::Decode(launch_, codec, code_.get(), n_, to_.get()));
  }
  Status Wait() override {
    if (status_.ok()) Check(cudaStreamSynchronize(launch_.stream));
    return status_;
  }

 private:
  template <typename T>
  void Allocate(size_t bytes, Memory<T>* to) {
    void* memory = nullptr;
    Check(cudaMalloc(&memory, bytes));
    *to->receive() = static_cast<T*>(memory);
  }
  void MakeJobs(const Codec& codec) {
    jobs_are_of_ = &codec;
    const cuda::EncodeJob plain{
        x_.get(), nullptr, nullptr, n_, code_.get(), first_bad_.get(), 0, {}, codec.settings()};
    cuda::EncodeJob feedback = plain;
    feedback.residual = residual_.get();
    const cuda::EncodeJob jobs[] = {plain, feedback};
    Check(cudaMemcpy(jobs_.get(), jobs, sizeof(jobs), cudaMemcpyHostToDevice));
  }
  void Check(cudaError_t code) {
    if (code != cudaSuccess && status_.ok()) {
      status_ = Internal(std::string("CUDA: ") + cudaGetErrorString(code));
    }
  }

  const int64_t n_;
  cuda::Launch launch_;
  Memory<float> x_;
  Memory<float> residual_;
  Memory<float> to_;
  Memory<std::byte> code_;
  Memory<unsigned long long> first_bad_;
  Memory<cuda::EncodeJob> jobs_;  // without and with error feedback
  const Codec* jobs_are_of_ = nullptr;
  Status status_;
};

}  // namespace

Result<std::unique_ptr<CodecKernels>> MakeCodecKernels(std::span<const float> numbers) {
  auto kernels = std::make_unique<CudaCodecKernels>(numbers);
  KUMO_RETURN_IF_ERROR(kernels->Wait());
  return std::unique_ptr<CodecKernels>(std::move(kernels));
}

}  // namespace kumo
