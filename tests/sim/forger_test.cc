// Forgers (forger.h) with random choices; tests/fuzz/forger_fuzzer.cc searches for worse ones.
#include "tests/sim/forger.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo::sim {
namespace {

std::vector<uint8_t> RandomBytes(uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<uint8_t> bytes(1 + rng.NextBelow(2000));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.NextBelow(256));
  return bytes;
}

TEST(Forger, ForgesMessages) {
  int forged = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const std::vector<uint8_t> bytes = RandomBytes(seed);
    Choices choices(bytes);
    Forger forger(1, &choices);
    SimSettings settings = JobWithAForger(false);
    settings.interference = &forger;
    (void)Cluster(settings, nullptr).Run();
    forged += forger.forged();
  }
  EXPECT_GT(forged, 100);
}

TEST(Forger, AMemberThatLiesChangesNoBitsOrIsNamed) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    EXPECT_EQ(ComplaintAboutForging(RandomBytes(seed)), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace kumo::sim
