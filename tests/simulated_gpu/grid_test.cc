// Kernels on the simulated GPU: threads, barriers, shuffles, and how a kernel that would hang is
// found.
#include "tests/simulated_gpu/grid.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/simulated_gpu/device_language.h"
#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo::simulated_gpu {
namespace {

__global__ void NumberThreads(int* to) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
}

// Each block's numbers in reverse, by way of shared memory.
__global__ void Reverse(int* numbers) {
  __shared__ int kept[64];
  int* const of_block = numbers + blockIdx.x * blockDim.x;
  kept[threadIdx.x] = of_block[threadIdx.x];
  __syncthreads();
  of_block[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

__global__ void SumOfWarps(const int* numbers, int* sums) {
  int sum = numbers[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFu, sum, static_cast<unsigned>(distance));
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
}

// Half-warps exchange at their own pace: those of the upper half a second time.
__global__ void HalfWarps(int* to) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned half = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  int value = __shfl_sync(half, lane, 3, 16);
  if (lane >= 16) value += 100 * __shfl_xor_sync(half, lane, 1, 16);
  to[threadIdx.x] = value;
}

__global__ void LeaveOutABarrier() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}

__global__ void ShuffleWithoutSome() {
  if (threadIdx.x < 8) __syncthreads();
  (void)__shfl_sync(0xFFFFFFFFu, 1, 0);
}

__global__ void ReadFromWhoTakesNoPart() {
  if (threadIdx.x < 16) (void)__shfl_sync(0x0000FFFFu, 1, 20);
}

class GridTest : public testing::Test {
 protected:
  GridTest() { Reset(); }
  ~GridTest() override { Reset(); }
  // Kernels may work on the host's memory here, since the device's is that too.
  template <typename... Parameters, typename... Arguments>
  cudaError_t Run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                  Arguments... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
    return error == cudaSuccess ? cudaDeviceSynchronize() : error;
  }
};

TEST_F(GridTest, EachThreadKnowsItsPlace) {
  std::vector<int> numbers(3 * 40);
  ASSERT_EQ(Run(NumberThreads, 3, 40, numbers.data()), cudaSuccess);
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(numbers[39], 39);
  EXPECT_EQ(numbers[2 * 40 + 7], 2007);
}

TEST_F(GridTest, ABarrierIsPassedByAllTogether) {
  std::vector<int> numbers(2 * 64);
  std::iota(numbers.begin(), numbers.end(), 0);
  ASSERT_EQ(Run(Reverse, 2, 64, numbers.data()), cudaSuccess);
  EXPECT_EQ(numbers[0], 63);
  EXPECT_EQ(numbers[63], 0);
  EXPECT_EQ(numbers[64], 127);
}

TEST_F(GridTest, ShufflesAddUpAWarp) {
  std::vector<int> numbers(64, 1);
  numbers[40] = 10;
  std::vector<int> sums(2);
  ASSERT_EQ(Run(SumOfWarps, 1, 64, numbers.data(), sums.data()), cudaSuccess);
  EXPECT_EQ(sums, (std::vector<int>{32, 41}));
}

TEST_F(GridTest, PartsOfAWarpShuffleOnTheirOwn) {
  std::vector<int> numbers(32);
  ASSERT_EQ(Run(HalfWarps, 1, 32, numbers.data()), cudaSuccess);
  EXPECT_EQ(numbers[9], 3);
  EXPECT_EQ(numbers[20], 19 + 100 * 21);
}

TEST_F(GridTest, AnImpossibleShapeIsRefused) {
  std::vector<int> numbers(1);
  EXPECT_EQ(Run(NumberThreads, 0, 1, numbers.data()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(Run(NumberThreads, 1, 1025, numbers.data()), cudaErrorInvalidConfiguration);
}

TEST_F(GridTest, ABarrierThatAThreadLeavesOutEndsTheProcess) {
  EXPECT_DEATH(Run(LeaveOutABarrier, 1, 32), "LeaveOutABarrier.*only 31 of 32 threads reach");
}

TEST_F(GridTest, AShuffleThatSomeDoNotComeToEndsTheProcess) {
  EXPECT_DEATH(Run(ShuffleWithoutSome, 1, 32), "ShuffleWithoutSome.*waits");
}

TEST_F(GridTest, AShuffleFromALaneThatTakesNoPartEndsTheProcess) {
  // Lane 20 of a group of 32, of which only the lower half is there.
  EXPECT_DEATH(Run(ReadFromWhoTakesNoPart, 1, 32), "reads from lane 20, which takes no part");
}

}  // namespace
}  // namespace kumo::simulated_gpu
