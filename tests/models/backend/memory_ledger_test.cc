#include "models/backend/memory_ledger.h"

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(MemoryLedgerTest, UsesOfOneNameAreOneAndTheLargestComeFirst) {
  MemoryLedger ledger;
  const char memory[5] = {};
  ledger.Add(&memory[0], 1'000'000, "activations");
  ledger.Add(&memory[1], 2'500'000, "the weights");
  ledger.Add(&memory[2], 3'000'000, "activations");
  ledger.Add(&memory[3], 900'000, "labels");
  EXPECT_EQ(ledger.bytes(), 7'400'000);
  EXPECT_EQ(ledger.Describe(2), "activations 4.0 MB, the weights 2.5 MB, the rest 0.9 MB");
  EXPECT_EQ(ledger.Describe(9), "activations 4.0 MB, the weights 2.5 MB, labels 0.9 MB");
}

TEST(MemoryLedgerTest, WhatIsGivenBackCountsNoMore) {
  MemoryLedger ledger;
  const char memory[2] = {};
  ledger.Add(&memory[0], 1'000'000, "activations");
  ledger.Remove(&memory[1]);
  EXPECT_EQ(ledger.bytes(), 1'000'000);
  ledger.Remove(&memory[0]);
  ledger.Remove(&memory[0]);
  EXPECT_EQ(ledger.bytes(), 0);
  EXPECT_EQ(ledger.Describe(3), "nothing");
}

}  // namespace
}  // namespace kumo
