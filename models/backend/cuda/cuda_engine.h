// Engine of the CUDA backend: the device, the stream, the libraries' handles, the workspace and the
// first failure, which all ops share.
//
// Everything is queued on the stream and nothing waits. The engine remembers the first call that
// fails, with the layer of the call; from then on nothing is queued, and Wait returns the failure.
// CUDA's own errors stay with the process, so the process cannot go on.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "common/base/status.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/backend/cuda/handle.h"
#include "models/backend/cuda/kernels.h"
#include "models/backend/cuda/step.h"
#include "models/backend/device_array.h"
#include "models/backend/memory_ledger.h"

namespace kumo::cuda {

using Stream = Handle<cudaStream_t, cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, cudaEventDestroy>;
using Cudnn = Handle<cudnnHandle_t, cudnnDestroy>;
using CublasLt = Handle<cublasLtHandle_t, cublasLtDestroy>;

class CudaEngine final : public DeviceMemory {
 public:
  // FailedPrecondition if there is no such device; the message names the devices.
  static Result<std::unique_ptr<CudaEngine>> Make(const CudaOptions& options);

  const CudaOptions& options() const { return options_; }
  const std::string& device_name() const { return device_name_; }
  // Number type of activations. 16-bit activations have their channels last.
  Precision precision() const { return options_.precision; }
  bool channels_last() const { return precision() != Precision::kFp32; }
  int64_t element_bytes() const { return precision() == Precision::kFp32 ? 4 : 2; }
  ActivationShape ShapeOf(const Shape& shape, int batch) const {
    return {precision(), batch, shape.channels(), shape.plane()};
  }
  // The host's order of activations, to be transposed to the device's.
  Planes HostOrder(const Shape& shape, int batch) const {
    if (channels_last()) return {batch, shape.channels(), shape.plane()};
    return {1, 1, shape.size() * batch};
  }
  int64_t ActivationBytes(const Shape& shape, int batch) const {
    return shape.size() * batch * element_bytes();
  }

  cudaStream_t stream() const { return stream_.get(); }
  Launch launch() const { return {stream_.get(), multiprocessors_}; }
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }

  void* Allocate(size_t bytes, const std::string& what) override;
  // Allocates memory with undefined content; null and no failure if there is not enough.
  void* TryAllocate(size_t bytes, const std::string& what);
  // Waits for what is queued.
  void Free(void* memory) override;
  const MemoryLedger& ledger() const { return ledger_; }
  // Free bytes of the device; 0 if it cannot say.
  size_t FreeBytes();

  // One workspace for all: ops run one after the other. Grows only before the first step.
  void ReserveWorkspace(size_t bytes);
  // Whether there is room for it.
  bool TryReserveWorkspace(size_t bytes);
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

  // The step under way, in device memory: kernels that are recorded once read it anew each time.
  StepBlock* step() const { return step_; }
  LossScale* loss_scale() const { return loss_scale_; }
  void SetStep(const StepBlock& step);

  // Layer whose calls follow: its name, borrowed until the next call.
  void set_place(const std::string* place) { place_ = place; }

  bool ok() const { return failure_.ok(); }
  // Whether a call can be made: nothing has failed, and the calling thread is on this device.
  bool Ready() { return failure_.ok() && Enter(); }
  void Remember(const Status& failure) {
    if (failure_.ok()) failure_ = failure;
  }
  // Whether a call went well; see KUMO_CUDA. The first that did not is remembered.
  bool Check(cudaError_t code, const char* call, const char* file, int line);
  bool Check(cudnnStatus_t code, const char* call, const char* file, int line);
  bool Check(cublasStatus_t code, const char* call, const char* file, int line);
  // Until nothing is queued any more, whatever became of it.
  void Drain();
  // Until everything queued is done; the first failure.
  Status Wait();

  ~CudaEngine() override;

 private:
  CudaEngine() = default;
  Status Open();
  bool Enter();
  Status NoRoom(size_t bytes, const std::string& what) const;
  bool Fail(const char* library, const char* problem, const char* call, const char* file, int line);

  CudaOptions options_;
  std::string device_name_;
  int multiprocessors_ = 0;
  Stream stream_;
  Cudnn cudnn_;
  CublasLt cublas_;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  StepBlock* step_ = nullptr;
  LossScale* loss_scale_ = nullptr;
  const std::string* place_ = nullptr;
  MemoryLedger ledger_;
  Status failure_;
};

// An array with undefined content, empty without a failure if there is not enough memory.
template <typename T>
DeviceArray<T> TryArray(CudaEngine& engine, int64_t size, const std::string& what) {
  return {engine, engine.TryAllocate(static_cast<size_t>(size) * sizeof(T), what), size};
}

// Makes a call, unless one failed before it; whether it went well.
#define KUMO_CUDA(engine, call) \
  ((engine).Ready() && (engine).Check((call), #call, __FILE__, __LINE__))

}  // namespace kumo::cuda
