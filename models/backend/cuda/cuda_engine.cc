#include "models/backend/cuda/cuda_engine.h"

#include <string>
#include <string_view>

namespace kumo::cuda {

Result<std::unique_ptr<CudaEngine>> CudaEngine::Make(const CudaOptions& options) {
  const std::string name = "network.device=cuda:" + std::to_string(options.device);
  const Result<std::vector<std::string>> devices = ListCudaDevices();
  if (!devices.ok()) return devices.status().WithContext(name);
  if (options.device < 0 || options.device >= std::ssize(*devices)) {
    std::string there;
    for (const std::string& device : *devices) there += (there.empty() ? "" : ", ") + device;
    return FailedPrecondition(name + ": there is only " + there);
  }
  std::unique_ptr<CudaEngine> engine(new CudaEngine());
  engine->options_ = options;
  KUMO_RETURN_IF_ERROR(engine->Open());
  return engine;
}

Status CudaEngine::Open() {
  cudaDeviceProp properties{};
  if (!KUMO_CUDA(*this, cudaGetDeviceProperties(&properties, options_.device))) return failure_;
  device_name_ = properties.name;
  if (precision() == Precision::kBf16 && properties.major < 8) {
    return FailedPrecondition(
        "network.precision=bf16 needs a GPU of compute capability 8.0; cuda:" +
        std::to_string(options_.device) + " (" + device_name_ + ") has " +
        std::to_string(properties.major) + "." + std::to_string(properties.minor) +
        ", which can do fp16");
  }
  multiprocessors_ = properties.multiProcessorCount;
  // Not the legacy stream: that one waits for, and is waited for by, every other.
  KUMO_CUDA(*this, cudaStreamCreateWithFlags(stream_.receive(), cudaStreamNonBlocking));
  KUMO_CUDA(*this, cudnnCreate(cudnn_.receive()));
  KUMO_CUDA(*this, cudnnSetStream(cudnn_.get(), stream_.get()));
  KUMO_CUDA(*this, cublasLtCreate(cublas_.receive()));
  KUMO_RETURN_IF_ERROR(failure_);
  step_ = static_cast<StepBlock*>(Allocate(sizeof(StepBlock), "a step's parameters"));
  loss_scale_ = static_cast<LossScale*>(Allocate(sizeof(LossScale), "the loss scale"));
  SetStep({});
  LossScale first;
  if (precision() == Precision::kFp16) first.scale = 0x1p16f;
  KUMO_CUDA(*this, cudaMemcpyAsync(loss_scale_, &first, sizeof(first), cudaMemcpyHostToDevice,
                                   stream_.get()));
  return Wait();
}

CudaEngine::~CudaEngine() {
  Free(loss_scale_);
  Free(step_);
  Free(workspace_);
}

// Each thread has a current device of its own, the first one until it says otherwise; and a backend
// is made by one thread and used by another.
bool CudaEngine::Enter() {
  thread_local int current = 0;
  if (current == options_.device) return true;
  if (!Check(cudaSetDevice(options_.device), "cudaSetDevice", __FILE__, __LINE__)) return false;
  current = options_.device;
  return true;
}

void* CudaEngine::TryAllocate(size_t bytes, const std::string& what) {
  if (bytes == 0 || !Ready()) return nullptr;
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // it does not stick
    return nullptr;
  }
  if (!Check(code, "cudaMalloc", __FILE__, __LINE__)) return nullptr;
  ledger_.Add(memory, static_cast<int64_t>(bytes), what);
  return memory;
}

void* CudaEngine::Allocate(size_t bytes, const std::string& what) {
  void* const memory = TryAllocate(bytes, what);
  if (memory != nullptr) {
    KUMO_CUDA(*this, cudaMemsetAsync(memory, 0, bytes, stream_.get()));
  } else if (bytes > 0 && ok()) {
    Remember(NoRoom(bytes, what));
  }
  return memory;
}

Status CudaEngine::NoRoom(size_t bytes, const std::string& what) const {
  size_t free = 0;
  size_t total = 0;
  (void)cudaMemGetInfo(&free, &total);
  return ResourceExhausted(what + " need " + Megabytes(static_cast<int64_t>(bytes)) +
                           " on cuda:" + std::to_string(options_.device) + " (" + device_name_ +
                           "), which has " + Megabytes(static_cast<int64_t>(free)) + " of " +
                           Megabytes(static_cast<int64_t>(total)) + " free; this process uses " +
                           ledger_.Describe(4) +
                           ". Smaller sync.minibatch and evaluation.minibatch need less");
}

void CudaEngine::Free(void* memory) {
  if (memory == nullptr) return;
  Drain();
  ledger_.Remove(memory);
  (void)cudaFree(memory);
}

void CudaEngine::Drain() {
  if (Enter()) (void)cudaStreamSynchronize(stream_.get());
}

size_t CudaEngine::FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  return KUMO_CUDA(*this, cudaMemGetInfo(&free, &total)) ? free : 0;
}

void CudaEngine::SetStep(const StepBlock& step) {
  KUMO_CUDA(*this, StoreStep(launch(), step, step_));
}

bool CudaEngine::TryReserveWorkspace(size_t bytes) {
  if (bytes <= workspace_bytes_) return ok();
  const std::string what = "the libraries' workspace";
  // The old one goes first: the new one may need its room.
  Free(workspace_);
  workspace_ = TryAllocate(bytes, what);
  const bool reserved = workspace_ != nullptr;
  if (reserved) {
    workspace_bytes_ = bytes;
  } else if (workspace_bytes_ > 0) {
    workspace_ = TryAllocate(workspace_bytes_, what);
    if (workspace_ == nullptr) Remember(NoRoom(workspace_bytes_, what));
  }
  return reserved;
}

void CudaEngine::ReserveWorkspace(size_t bytes) {
  if (ok() && !TryReserveWorkspace(bytes)) Remember(NoRoom(bytes, "the libraries' workspace"));
}

bool CudaEngine::Fail(const char* library, const char* problem, const char* call, const char* file,
                      int line) {
  if (!failure_.ok()) return false;
  // An op's file is named together with its folder: "pooling/cuda.cu".
  const std::string_view path(file);
  const size_t slash = path.rfind('/');
  const size_t folder = slash == path.npos || slash == 0 ? path.npos : path.rfind('/', slash - 1);
  failure_ = Internal(std::string(library) + ": " + problem + " in " + call + " (" +
                      std::string(path.substr(folder == path.npos ? 0 : folder + 1)) + ":" +
                      std::to_string(line) + ")" + (place_ != nullptr ? ", layer " + *place_ : ""));
  return false;
}

bool CudaEngine::Check(cudaError_t code, const char* call, const char* file, int line) {
  return code == cudaSuccess || Fail("CUDA", cudaGetErrorString(code), call, file, line);
}

bool CudaEngine::Check(cudnnStatus_t code, const char* call, const char* file, int line) {
  if (code == CUDNN_STATUS_SUCCESS) return true;
  char why[256] = "";
  cudnnGetLastErrorString(why, sizeof(why));
  const std::string problem =
      std::string(cudnnGetErrorString(code)) + (*why == 0 ? "" : ": ") + why;
  return Fail("cuDNN", problem.c_str(), call, file, line);
}

bool CudaEngine::Check(cublasStatus_t code, const char* call, const char* file, int line) {
  return code == CUBLAS_STATUS_SUCCESS ||
         Fail("cuBLAS", cublasLtGetStatusString(code), call, file, line);
}

Status CudaEngine::Wait() {
  // A kernel's failure appears here; its layer is unknown.
  place_ = nullptr;
  KUMO_CUDA(*this, cudaStreamSynchronize(stream_.get()));
  return failure_;
}

}  // namespace kumo::cuda

namespace kumo {

Result<std::vector<std::string>> ListCudaDevices() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return FailedPrecondition("this machine has no NVIDIA driver");
  }
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return FailedPrecondition(std::string(cudaGetErrorString(code)) + " (the driver is for CUDA " +
                              std::to_string(driver / 1000) + "." +
                              std::to_string(driver % 1000 / 10) + ", this build for " +
                              std::to_string(CUDART_VERSION / 1000) + "." +
                              std::to_string(CUDART_VERSION % 1000 / 10) + ")");
  }
  if (count == 0) return FailedPrecondition("there is no GPU");
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    const bool known = cudaGetDeviceProperties(&properties, i) == cudaSuccess;
    devices.push_back("cuda:" + std::to_string(i) +
                      (known
                           ? " (" + std::string(properties.name) + ", " +
                                 std::to_string(properties.totalGlobalMem / 1'000'000'000) + " GB)"
                           : ""));
  }
  return devices;
}

}  // namespace kumo
