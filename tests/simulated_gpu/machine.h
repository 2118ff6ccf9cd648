// What lies behind the three APIs: devices, their memory and streams, and the failures that a test
// has ordered. The APIs are process-wide, and so is this.
//
// Every method requires the mutex, which an API call holds from its beginning to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo::simulated_gpu {

using Work = std::function<void()>;

// What was queued on a stream and has not begun.
struct Queue {
  int device = 0;
  std::deque<Work> works;
  uint64_t begun = 0;  // works that were queued before those
  uint64_t end() const { return begun + works.size(); }
};

// What a capture holds, and each launch of its graph queues: a piece of work, or an event that the
// launch records.
struct Node {
  Work work;
  cudaEvent_t event = nullptr;
};

// What a stream does instead of queueing while it captures.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool valid = true;
  std::vector<Node> nodes;
};

}  // namespace kumo::simulated_gpu

struct CUstream_st {
  std::shared_ptr<kumo::simulated_gpu::Queue> queue;
  bool blocking = true;  // waits for the legacy stream, which waits for it
  std::optional<kumo::simulated_gpu::Capture> capture;
};

// A place in a queue: everything before `end`.
struct CUevent_st {
  std::shared_ptr<kumo::simulated_gpu::Queue> queue;  // null before it is recorded
  uint64_t end = 0;
  bool captured = false;
};

struct CUgraph_st {
  std::vector<kumo::simulated_gpu::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<kumo::simulated_gpu::Node> nodes;
};

namespace kumo::simulated_gpu {

class Machine {
 public:
  static Machine& Get();
  std::mutex& mutex() { return mutex_; }
  void Reset(const Settings& settings);

  int devices() const { return settings_.devices; }
  size_t memory_bytes() const { return settings_.memory_bytes; }
  int compute_capability() const { return settings_.compute_capability; }

  // --- Failures
  // What every call answers since a piece of work has failed.
  cudaError_t fault() const { return fault_; }
  void OrderFault(int64_t nth) { works_before_fault_ = nth; }
  void OrderFailure(Api api, int64_t nth, int code) { failures_[api] = {nth, code}; }
  // What the call of this API that is being made has to fail with.
  std::optional<int> OrderedFailure(Api api);

  // --- Memory
  enum class Place {
    kPageable,
    kPinned,
    kDevice,
    kOutside
  };  // kOutside: beyond an allocation's end
  cudaError_t Allocate(int device, size_t bytes, void** memory);
  cudaError_t Free(void* memory);
  cudaError_t Pin(size_t bytes, void** memory);
  cudaError_t Unpin(void* memory);
  Place PlaceOf(const void* memory, size_t bytes) const;
  size_t bytes_in_use(std::optional<int> device) const;
  // Of streams that there are.
  bool idle() const;

  // --- Streams. Null, and cudaStreamLegacy, are the device's legacy stream.
  cudaStream_t MakeStream(int device, bool blocking);
  void DestroyStream(cudaStream_t stream);
  // The stream itself; null when there is none.
  CUstream_st* Find(cudaStream_t stream, int device);
  // Queues or captures.
  cudaError_t Submit(CUstream_st* stream, Work work);
  // Begins works of the queue up to `end`, and what those wait for.
  void Run(Queue& queue, uint64_t end);
  // Until the stream is empty.
  cudaError_t Synchronise(CUstream_st* stream);
  void SynchroniseAll();
  // Whether a capture forbids the thread a call that may wait or allocate; if so, the capture ends
  // as invalid. `waits`: a call that waits for the whole device.
  bool CaptureForbids(bool waits);
  // Of a piece of work within another one (a graph's).
  void Begin(const Work& work);

 private:
  struct Allocation {
    size_t bytes = 0;
    int device = 0;
  };
  struct Failure {
    int64_t nth = 0;
    int code = 0;
  };
  Machine();
  CUstream_st* Legacy(int device);

  std::mutex mutex_;
  Settings settings_;
  cudaError_t fault_ = cudaSuccess;
  int64_t works_before_fault_ = 0;  // 0: none is ordered
  std::map<Api, Failure> failures_;
  std::map<uintptr_t, Allocation> device_memory_;
  std::map<uintptr_t, size_t> pinned_;
  std::set<CUstream_st*> streams_;
  std::map<int, std::unique_ptr<CUstream_st>> legacy_;
};

// The device of the calling thread, as cudaSetDevice has it.
int& CurrentDevice();

}  // namespace kumo::simulated_gpu
