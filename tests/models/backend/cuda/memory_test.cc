// How the CUDA backend holds what the libraries and the driver hand out: handles, and pinned memory
// that is used again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/backend/cuda/handle.h"
#include "models/backend/cuda/pinned_pool.h"

namespace kumo::cuda {
namespace {

std::vector<int*>& Destroyed() {
  static std::vector<int*> destroyed;
  return destroyed;
}
int Destroy(int* object) {
  Destroyed().push_back(object);
  return 1;  // a failure, which nobody can use
}

TEST(HandleTest, EachObjectIsDestroyedOnceByItsLastOwner) {
  int a = 0;
  int b = 0;
  Destroyed().clear();
  {
    Handle<int*, Destroy> first;
    EXPECT_FALSE(first);
    *first.receive() = &a;
    Handle<int*, Destroy> second(std::move(first));
    EXPECT_EQ(second.get(), &a);
    EXPECT_FALSE(first);
    EXPECT_TRUE(Destroyed().empty());
    *second.receive() = &b;  // what it held goes
    EXPECT_EQ(Destroyed(), std::vector<int*>{&a});
    first = std::move(second);
  }
  EXPECT_EQ(Destroyed(), (std::vector<int*>{&a, &b}));
}

TEST(PinnedPoolTest, BlocksAreAlignedLargeEnoughAndUsedAgain) {
  PinnedPool pool;
  for (const size_t bytes : {size_t{1}, size_t{65}, size_t{5000}, (size_t{1} << 20) + 1}) {
    std::shared_ptr<std::byte> block = pool.Take(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u);
    block.get()[bytes - 1] = std::byte{7};
    const std::byte* const place = block.get();
    const std::shared_ptr<std::byte> other = pool.Take(bytes);
    EXPECT_NE(other.get(), place) << "it is still owned";
    block.reset();
    EXPECT_EQ(pool.Take(bytes).get(), place);
  }
}

TEST(PinnedPoolTest, ABlockGoesBackOnAnyThreadAndMayOutliveThePool) {
  auto pool = std::make_unique<PinnedPool>();
  std::shared_ptr<std::byte> block = pool->Take(100);
  const std::byte* const place = block.get();
  std::thread([moved = std::move(block)] {}).join();
  block = pool->Take(100);
  EXPECT_EQ(block.get(), place);
  pool.reset();
  *block = std::byte{1};
}

}  // namespace
}  // namespace kumo::cuda
