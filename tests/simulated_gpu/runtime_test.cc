// The simulated runtime keeps what it promises: work waits until somebody synchronises, captures
// refuse, memory ends, and a failure stays.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo::simulated_gpu {
namespace {

constexpr size_t kBytes = 4096;

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    Reset();
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&pinned_, kBytes, cudaHostAllocDefault), cudaSuccess);
    std::memset(pinned_, 1, kBytes);
  }
  ~RuntimeTest() override {
    (void)cudaStreamDestroy(stream_);
    Reset();
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
  }

  uint8_t FirstByte() {
    uint8_t byte = 0;
    EXPECT_EQ(cudaMemcpyAsync(&byte, device_, 1, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    return byte;
  }
  cudaError_t CopyIn() {
    return cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyHostToDevice, stream_);
  }

  cudaStream_t stream_ = nullptr;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
};

TEST_F(RuntimeTest, NewMemoryIsRubbish) { EXPECT_EQ(FirstByte(), 0xFF); }

TEST_F(RuntimeTest, ACopyFromPinnedMemoryTakesWhatIsThereWhenItRuns) {
  ASSERT_EQ(CopyIn(), cudaSuccess);
  std::memset(pinned_, 2, kBytes);
  EXPECT_EQ(FirstByte(), 2);
}

TEST_F(RuntimeTest, ACopyFromOtherMemoryTakesWhatIsThereAtTheCall) {
  std::vector<uint8_t> host(kBytes, 3);
  ASSERT_EQ(cudaMemcpyAsync(device_, host.data(), kBytes, cudaMemcpyHostToDevice, stream_),
            cudaSuccess);
  host.assign(kBytes, 4);
  EXPECT_EQ(FirstByte(), 3);
}

TEST_F(RuntimeTest, AStreamWaitsForAnothersEvent) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device_, 5, kBytes, other), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device_, 6, kBytes, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaSuccess);
  EXPECT_EQ(FirstByte(), 5) << "what comes after the event is not waited for";
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(other), cudaSuccess);
  EXPECT_EQ(FirstByte(), 6);
}

TEST_F(RuntimeTest, ACopyOfMoreThanThereIsOrInTheWrongDirectionIsRefused) {
  EXPECT_EQ(cudaMemcpyAsync(device_, pinned_, kBytes + 1, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeTest, AGraphRepeatsWhatWasCaptured) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaMemsetAsync(device_, 7, kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(CopyIn(), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(FirstByte(), 7) << "capturing runs nothing";
  for (const int value : {8, 9}) {
    std::memset(pinned_, value, kBytes);
    ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    EXPECT_EQ(FirstByte(), value);
  }
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

// What a graph's event tells is the place in its newest launch.
TEST_F(RuntimeTest, AStreamWaitsForAPlaceInAGraph) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(event, stream_, cudaEventRecordExternal),
            cudaErrorInvalidValue)
      << "there is no graph that it could be outside of";
  (void)cudaGetLastError();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(CopyIn(), cudaSuccess);
  ASSERT_EQ(cudaEventRecordWithFlags(event, stream_, cudaEventRecordExternal), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device_, 6, kBytes, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  uint8_t* seen = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&seen), 1, 0), cudaSuccess);
  for (const int value : {8, 9}) {
    std::memset(pinned_, value, kBytes);
    ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(seen, device_, 1, cudaMemcpyDeviceToHost, other), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(*seen, value);
    EXPECT_EQ(FirstByte(), 6);
  }
  EXPECT_EQ(cudaFreeHost(seen), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(RuntimeTest, WhatACaptureDoesNotAllowEndsItAsInvalid) {
  void* memory = nullptr;
  std::vector<uint8_t> host(kBytes);
  const std::vector<std::function<cudaError_t()>> calls = {
      [&] { return cudaMalloc(&memory, 1); }, [&] { return cudaFree(device_); },
      [&] { return cudaStreamSynchronize(stream_); }, [&] { return cudaDeviceSynchronize(); },
      [&] {
        return cudaMemcpyAsync(host.data(), device_, kBytes, cudaMemcpyDeviceToHost, stream_);
      }};
  for (const auto& call : calls) {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(CopyIn(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(RuntimeTest, MemoryEndsWhereTheSettingSays) {
  (void)cudaStreamDestroy(stream_);
  Reset({.memory_bytes = 1000});
  ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  void* most = nullptr;
  void* more = nullptr;
  size_t free = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMalloc(&most, 900), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 101), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 100u);
  EXPECT_EQ(total, 1000u);
  EXPECT_EQ(BytesInUse(), 900u);
  ASSERT_EQ(cudaFree(most), cudaSuccess);
  EXPECT_EQ(BytesInUse(), 0u);
}

TEST_F(RuntimeTest, AFaultIsSeenBySynchronisingAndByEveryCallAfterIt) {
  FaultAtWork(2);
  ASSERT_EQ(CopyIn(), cudaSuccess);
  ASSERT_EQ(CopyIn(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_EQ(CopyIn(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(device_), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "it cannot be taken away";
}

TEST_F(RuntimeTest, AnOrderedFailureComesAtItsCallAndOnce) {
  FailCall(Api::kRuntime, 2, cudaErrorUnknown);
  EXPECT_EQ(CopyIn(), cudaSuccess);
  EXPECT_EQ(CopyIn(), cudaErrorUnknown);
  EXPECT_EQ(CopyIn(), cudaSuccess);
}

TEST_F(RuntimeTest, ACopyWhoseMemoryIsGoneBeforeItRunsEndsTheProcess) {
  EXPECT_DEATH(
      {
        (void)CopyIn();
        (void)cudaFreeHost(pinned_);
        (void)cudaStreamSynchronize(stream_);
      },
      "a copy's source was freed too early");
}

}  // namespace
}  // namespace kumo::simulated_gpu
