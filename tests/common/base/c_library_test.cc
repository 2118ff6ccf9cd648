// The C library chooses its functions by the CPU: glibc has versions with and without fused
// multiply-adds. Workers of one instruction-set level must compute the same bits on any CPU, so the
// float32 results that reach the weights must not depend on this choice: expf and logf of losses,
// initial weights, and learning rates. (Of all 2^32 arguments of glibc 2.36's expf two have another
// last bit: 32.56, which no loss asks for, and -63.10, whose result of 4e-28 changes no sum.)
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "common/base/fnv.h"
#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr char kPrints[] = "KUMO_PRINTS_HASH";  // in the child's environment
constexpr char kWithoutFma[] = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F";

uint64_t HashOfResults() {
  constexpr int kArguments = 300'000;
  Fnv1a hash;
  const auto add = [&hash](float result) { hash.Add(uint64_t{std::bit_cast<uint32_t>(result)}); };
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < kArguments; ++i) {
    const float x = rng.NextUniform() * 100 - 90;
    add(std::exp(x));
    add(std::log(1e-3f + rng.NextUniform() * 100));
    add(rng.NextNormal());
    const double progress = i * (1.0 / kArguments);
    add(static_cast<float>(0.5 * (1.0 + std::cos(std::numbers::pi * progress))));
    add(static_cast<float>(0.1 * std::pow(1.0 - progress, 0.9)));
    add(static_cast<float>(std::exp(-progress)));
  }
  return hash.value();
}

TEST(CLibrary, ResultsThatReachWeightsAreTheSameWithoutFusedMultiplyAdds) {
  char hash[32];
  std::snprintf(hash, sizeof hash, "hash %016lx\n", HashOfResults());
  if (std::getenv(kPrints) != nullptr) {
    std::fputs(hash, stdout);
    return;
  }
  char own[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", own, sizeof own - 1), 0);
  const std::string command = "unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX; " +
                              std::string(kPrints) + "=1 " + kWithoutFma + " " + own +
                              " --gtest_filter='CLibrary.*'";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (char line[256]; std::fgets(line, sizeof line, pipe) != nullptr;) output += line;
  ASSERT_EQ(pclose(pipe), 0) << output;
  EXPECT_NE(output.find(hash), std::string::npos) << hash << output;
}

}  // namespace
}  // namespace kumo
