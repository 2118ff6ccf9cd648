// The CUDA runtime's functions. What each has to do is said in cuda_runtime_api.h.
#include "tests/simulated_gpu/runtime.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <glog/logging.h>

using kumo::simulated_gpu::Capture;
using kumo::simulated_gpu::CurrentDevice;
using kumo::simulated_gpu::LastError;
using kumo::simulated_gpu::Machine;
using kumo::simulated_gpu::Node;
using kumo::simulated_gpu::Runtime;
using kumo::simulated_gpu::Work;
using MachinePlace = kumo::simulated_gpu::Machine::Place;

namespace kumo::simulated_gpu {

cudaError_t& LastError() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace kumo::simulated_gpu

namespace {

// call(Machine&, CUstream_st*) on a stream that there is.
template <typename F>
cudaError_t OnStream(cudaStream_t stream, F call) {
  return Runtime([&](Machine& machine) -> cudaError_t {
    CUstream_st* const found = machine.Find(stream, CurrentDevice());
    return found == nullptr ? cudaErrorInvalidResourceHandle : call(machine, found);
  });
}

// Works of another stream that the graph or the queue of this one is to wait for.
Work WaitFor(Machine& machine, const CUevent_st& event) {
  return [&machine, queue = event.queue, end = event.end] { machine.Run(*queue, end); };
}

bool Fits(cudaMemcpyKind kind, MachinePlace from, MachinePlace to) {
  const bool from_device = from == MachinePlace::kDevice;
  const bool to_device = to == MachinePlace::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
      return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
      return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
      return from_device && to_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

cudaError_t Copy(Machine& machine, CUstream_st* stream, void* to, const void* from, size_t bytes,
                 cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const MachinePlace source = machine.PlaceOf(from, bytes);
  const MachinePlace target = machine.PlaceOf(to, bytes);
  if (from == nullptr || to == nullptr || source == MachinePlace::kOutside ||
      target == MachinePlace::kOutside || !Fits(kind, source, target)) {
    return cudaErrorInvalidValue;
  }
  const bool pageable = source == MachinePlace::kPageable || target == MachinePlace::kPageable;
  if (stream->capture && pageable) {
    stream->capture->valid = false;
    return cudaErrorStreamCaptureUnsupported;
  }
  // A source that is not pinned is read before the call returns.
  std::shared_ptr<std::vector<std::byte>> staged;
  if (source == MachinePlace::kPageable) {
    const auto* const begin = static_cast<const std::byte*>(from);
    staged = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
  }
  const cudaError_t error = machine.Submit(stream, [=, &machine] {
    CHECK(staged || machine.PlaceOf(from, bytes) == source)
        << "a copy's source was freed too early";
    CHECK(machine.PlaceOf(to, bytes) == target) << "a copy's target was freed too early";
    std::memmove(to, staged ? staged->data() : from, bytes);
  });
  if (error != cudaSuccess || target != MachinePlace::kPageable) return error;
  return machine.Synchronise(stream);
}

cudaError_t Fill(Machine& machine, CUstream_st* stream, void* memory, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (machine.PlaceOf(memory, bytes) != MachinePlace::kDevice) return cudaErrorInvalidValue;
  return machine.Submit(stream, [=] { std::memset(memory, value, bytes); });
}

}  // namespace

// --- Errors and devices

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  LastError() = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  const std::lock_guard lock(Machine::Get().mutex());
  const cudaError_t fault = Machine::Get().fault();
  return fault != cudaSuccess ? fault : LastError();
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "an error that the simulated GPU has no words for";
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// No device of the machine that the tests run on: nobody is to be bound to cores near it.
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  return Runtime([&](Machine& machine) {
    if (device < 0 || device >= machine.devices()) return cudaErrorInvalidDevice;
    std::snprintf(id, static_cast<size_t>(bytes), "FFFF:FF:%02X.0", device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return Runtime([&](Machine& machine) {
    *count = machine.devices();
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Runtime([&](Machine& machine) {
    if (device < 0 || device >= machine.devices()) return cudaErrorInvalidDevice;
    CurrentDevice() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return Runtime([&](Machine&) {
    *device = CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return Runtime([&](Machine& machine) {
    if (device < 0 || device >= machine.devices()) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "simulated GPU");
    properties->totalGlobalMem = machine.memory_bytes();
    properties->multiProcessorCount = 2;  // kernels of few threads
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = machine.compute_capability() / 10;
    properties->minor = machine.compute_capability() % 10;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return Runtime([&](Machine& machine) {
    if (machine.CaptureForbids(true)) return cudaErrorStreamCaptureUnsupported;
    machine.SynchroniseAll();
    return machine.fault();
  });
}

// --- Memory

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return Runtime(
      [&](Machine& machine) { return machine.Allocate(CurrentDevice(), bytes, memory); });
}

cudaError_t cudaFree(void* memory) {
  return Runtime([&](Machine& machine) { return machine.Free(memory); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return Runtime([&](Machine& machine) { return machine.Pin(bytes, memory); });
}

cudaError_t cudaFreeHost(void* memory) {
  return Runtime([&](Machine& machine) { return machine.Unpin(memory); });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return Runtime([&](Machine& machine) {
    *total = machine.memory_bytes();
    *free = *total - machine.bytes_in_use(CurrentDevice());
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return OnStream(stream, [&](Machine& machine, CUstream_st* found) {
    return Copy(machine, found, to, from, bytes, kind);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return OnStream(nullptr, [&](Machine& machine, CUstream_st* legacy) {
    const cudaError_t error = Copy(machine, legacy, to, from, bytes, kind);
    return error == cudaSuccess ? machine.Synchronise(legacy) : error;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return OnStream(stream, [&](Machine& machine, CUstream_st* found) {
    return Fill(machine, found, memory, value, bytes);
  });
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

// --- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Runtime([&](Machine& machine) {
    *stream = machine.MakeStream(CurrentDevice(), (flags & cudaStreamNonBlocking) == 0);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

// Also when the device has failed: else no process could end in order.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Machine& machine = Machine::Get();
  const std::lock_guard lock(machine.mutex());
  if (stream == nullptr || machine.Find(stream, 0) == nullptr)
    return cudaErrorInvalidResourceHandle;
  machine.DestroyStream(stream);
  return machine.fault();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return OnStream(stream,
                  [](Machine& machine, CUstream_st* found) { return machine.Synchronise(found); });
}

// Whoever asks again and again gets one piece of work done each time.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return OnStream(stream, [](Machine& machine, CUstream_st* found) {
    if (found->capture) return machine.Synchronise(found);
    auto& queue = *found->queue;
    if (!queue.works.empty()) machine.Run(queue, queue.begun + 1);
    if (machine.fault() != cudaSuccess) return machine.fault();
    return queue.works.empty() ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return Runtime([&](Machine&) {
    *event = new CUevent_st();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return OnStream(stream, [&](Machine&, CUstream_st* found) {
    if (found->capture && !found->capture->valid) return cudaErrorStreamCaptureInvalidated;
    *event = {found->queue, found->queue->end(), found->capture.has_value()};
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  return OnStream(stream, [&](Machine&, CUstream_st* found) {
    if (flags != cudaEventRecordExternal || !found->capture) return cudaErrorInvalidValue;
    if (!found->capture->valid) return cudaErrorStreamCaptureInvalidated;
    found->capture->nodes.push_back({nullptr, event});
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Runtime([&](Machine& machine) {
    if (event->captured) return cudaErrorCapturedEvent;
    if (event->queue != nullptr) machine.Run(*event->queue, event->end);
    return machine.fault();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return OnStream(stream, [&](Machine& machine, CUstream_st* found) {
    if (event->queue == nullptr) return cudaSuccess;
    if (found->capture.has_value() != event->captured) {
      LOG_IF(FATAL, event->captured) << "a capture over several streams is not simulated";
      found->capture->valid = false;
      return cudaErrorStreamCaptureIsolation;
    }
    if (event->captured) return cudaSuccess;  // the same stream's, whose works are in order
    found->queue->works.push_back(WaitFor(machine, *event));
    return cudaSuccess;
  });
}

// --- Graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return OnStream(stream, [&](Machine&, CUstream_st* found) {
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    if (found->capture) return cudaErrorIllegalState;
    found->capture = Capture{mode, std::this_thread::get_id(), true, {}};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return OnStream(stream, [&](Machine&, CUstream_st* found) {
    *graph = nullptr;
    if (!found->capture) return cudaErrorIllegalState;
    if (found->capture->mode != cudaStreamCaptureModeRelaxed &&
        found->capture->thread != std::this_thread::get_id()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    const Capture capture = std::move(*found->capture);
    found->capture.reset();
    if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
    *graph = new CUgraph_st{capture.nodes};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return OnStream(stream, [&](Machine&, CUstream_st* found) {
    *status = !found->capture         ? cudaStreamCaptureStatusNone
              : found->capture->valid ? cudaStreamCaptureStatusActive
                                      : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return cudaErrorInvalidValue;
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  return Runtime([&](Machine&) {
    if (graph == nullptr) return cudaErrorInvalidValue;
    *executable = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
  });
}

// What was launched goes on to its end.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return cudaErrorInvalidValue;
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return OnStream(stream, [&](Machine& machine, CUstream_st* found) {
    for (const Node& node : executable->nodes) {
      if (node.event != nullptr) {
        *node.event = {found->queue, found->queue->end(), false};
        continue;
      }
      const cudaError_t error = machine.Submit(found, node.work);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}
