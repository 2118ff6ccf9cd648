// A simulated GPU: the functions of the CUDA runtime, cuDNN and cuBLASLt that the CUDA backend
// calls, and the part of CUDA C++ that its kernels use, on the host. So the backend's own sources
// run where there is no GPU, under sanitizers too.
//
// It holds the backend to what NVIDIA's documentation promises and to no more:
// - Device memory is host memory, each allocation a malloc of its own (the address sanitizer is its
//   memcheck), full of 0xFF bytes: as numbers NaN.
// - Streams are lazy. What is queued runs when somebody synchronises, in the thread that does; so
//   host memory that is used again too early shows as wrong numbers.
// - What is not certain is refused: a copy from memory that is not pinned while a stream captures,
//   a kernel on a stream of a device that is not the thread's, a barrier that a thread leaves out.
// - What it does not know ends the process and says so; it never pretends.
//
// A process reads KUMO_SIMULATED_GPU once, at its first call: "memory_mb=64,fault_at=500,devices=2"
// sets the members of Settings that it names. Tests in one process use the functions here.
// Everything is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo::simulated_gpu {

struct Settings {
  int devices = 1;
  size_t memory_bytes = size_t{128} << 20;  // of each device
  int64_t fault_at = 0;                     // as FaultAtWork; 0: never
  int compute_capability = 80;              // ten times the number; bf16 begins with 80
};

enum class Api { kRuntime, kCudnn, kCublasLt };

// A machine that has just been started: memory is gone, nothing has failed and nothing will but
// what `settings` says. Requires that no stream is left.
void Reset(const Settings& settings = {});
// The n-th call from now (1: the next) of an API fails with that API's `code`, without being made.
void FailCall(Api api, int64_t nth, int code);
// The n-th piece of work from now that a device begins (a kernel, a copy, a library's operation;
// one in a graph too) fails as an illegal access does: the next call that synchronises says so, and
// from then on every call.
void FaultAtWork(int64_t nth);
// Device memory that is allocated, of all devices.
size_t BytesInUse();
// Whether nothing is queued on any stream.
bool IsIdle();

}  // namespace kumo::simulated_gpu
