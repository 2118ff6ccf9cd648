#include "common/checkpoint/shard_file.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/rng.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr char kPath[] = "/shard";
constexpr ShardFileHeader kHeader = {.job = 11,
                                     .experiment_hash = 22,
                                     .fingerprint = 33,
                                     .version = 44,
                                     .generation = 5,
                                     .shard = 1,
                                     .shards = 3};

// An array of numbers that tell kind, partition, slot and position.
StateArray MakeArray(StateKind kind, int partition, int slot, Range range) {
  auto numbers = std::make_shared<std::vector<float>>();
  for (int64_t i = range.begin; i < range.end; ++i) {
    numbers->push_back(static_cast<float>(i) + 0.125f * static_cast<float>(slot) +
                       1e6f * static_cast<float>(partition) +
                       1e7f * static_cast<float>(static_cast<int>(kind)));
  }
  const std::span<const float> span = *numbers;
  return {kind, partition, slot, range.begin, std::move(numbers), span};
}

ShardSnapshot SmallSnapshot() {
  return {44,
          {MakeArray(StateKind::kStart, 0, 0, {100, 103}),
           MakeArray(StateKind::kStart, 0, 0, {103, 104}),
           MakeArray(StateKind::kWeights, 0, 0, {100, 104}),
           MakeArray(StateKind::kRuleSlot, 0, 1, {100, 102}),
           MakeArray(StateKind::kPartitionState, 3, 0, {101, 103})}};
}

std::string SmallFile() {
  MemoryFileSystem files;
  CHECK(WriteShardFile(files, kPath, kHeader, SmallSnapshot()).ok());
  return *files.Contents(kPath);
}

// Reads all that a file says it holds.
Result<std::vector<StateArray>> ReadAll(FileSystem& files) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ShardFileReader> reader,
                        ShardFileReader::Open(files, kPath));
  std::vector<StateArray> arrays;
  KUMO_RETURN_IF_ERROR(reader->ReadOverlapping({0, int64_t{1} << 36}, &arrays));
  return arrays;
}

Status ReadBytes(const std::string& bytes) {
  MemoryFileSystem files;
  files.Put(kPath, bytes);
  return ReadAll(files).status();
}

void ExpectEqual(const StateArray& a, const StateArray& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.partition, b.partition);
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_TRUE(std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), b.numbers.end()));
}

TEST(ShardFileTest, WhatIsWrittenIsReadBack) {
  MemoryFileSystem files;
  const auto saved = WriteShardFile(files, kPath, kHeader, SmallSnapshot());
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->bytes, files.Contents(kPath)->size());
  EXPECT_EQ(saved->crc32c, Crc32c(AsBytes(*files.Contents(kPath))));

  auto reader = ShardFileReader::Open(files, kPath);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ((*reader)->header(), kHeader);
  EXPECT_TRUE((*reader)->Verify().ok());
  const auto arrays = ReadAll(files);
  ASSERT_TRUE(arrays.ok());
  const ShardSnapshot expected = SmallSnapshot();
  ASSERT_EQ(arrays->size(), expected.arrays.size());
  for (size_t i = 0; i < arrays->size(); ++i) ExpectEqual((*arrays)[i], expected.arrays[i]);
}

TEST(ShardFileTest, LayoutIsTheDocumentedOne) {
  // Offsets from the header's grammar, so that a change of the format cannot go unnoticed.
  const std::string file = SmallFile();
  const auto u32 = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, file.data() + at, sizeof(value));
    return value;
  };
  EXPECT_EQ(file.substr(0, 8), "KUMOSHRD");
  EXPECT_EQ(u32(8), 1u);
  EXPECT_EQ(u32(12), 72u);
  EXPECT_EQ(u32(16), 11u);
  EXPECT_EQ(u32(40), 44u);
  EXPECT_EQ(u32(48), 5u);
  EXPECT_EQ(u32(68), MaskCrc32c(Crc32c(AsBytes(file).first(68))));
  EXPECT_EQ(file.substr(72, 4), "KREC");
  EXPECT_EQ(u32(72 + 24), 100u);
  EXPECT_EQ(u32(72 + 32), 3u);
  EXPECT_EQ(u32(72 + 40), Crc32c(AsBytes(file).subspan(72 + 48, 12)));
  EXPECT_EQ(file.substr(72 + 48 + 12, 4), "KREC");
  const size_t footer = file.size() - 32;
  EXPECT_EQ(footer, 72 + 5 * 48 + (3 + 1 + 4 + 2 + 2) * sizeof(float));
  EXPECT_EQ(file.substr(footer, 4), "KEND");
  EXPECT_EQ(u32(footer + 8), 5u);
  EXPECT_EQ(u32(footer + 16), file.size());
}

TEST(ShardFileTest, ChecksumOfTheFileTellsHeadersApart) {
  // It would not if the headers ended with their bare CRCs.
  MemoryFileSystem files;
  ShardFileHeader other = kHeader;
  ++other.generation;
  const auto saved = WriteShardFile(files, kPath, kHeader, SmallSnapshot());
  const auto saved_other = WriteShardFile(files, kPath, other, SmallSnapshot());
  ASSERT_TRUE(saved.ok() && saved_other.ok());
  EXPECT_NE(saved->crc32c, saved_other->crc32c);
}

TEST(ShardFileTest, SnapshotWithoutArraysIsAFile) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteShardFile(files, kPath, kHeader, {44, {}}).ok());
  EXPECT_EQ(files.Contents(kPath)->size(), 72u + 32u);
  EXPECT_TRUE(ReadAll(files)->empty());
}

TEST(ShardFileTest, EveryRangeGetsExactlyItsPartOfEachRecord) {
  MemoryFileSystem files;
  files.Put(kPath, SmallFile());
  auto reader = ShardFileReader::Open(files, kPath);
  ASSERT_TRUE(reader.ok());
  for (int64_t begin = 98; begin < 106; ++begin) {
    for (int64_t end = begin; end < 106; ++end) {
      std::vector<StateArray> arrays;
      ASSERT_TRUE((*reader)->ReadOverlapping({begin, end}, &arrays).ok());
      std::vector<StateArray> expected;
      for (const StateArray& all : SmallSnapshot().arrays) {
        const int64_t all_end = all.begin + std::ssize(all.numbers);
        const Range part = {std::max(begin, all.begin), std::min(end, all_end)};
        if (part.size() > 0) {
          expected.push_back(MakeArray(all.kind, all.partition, all.slot, part));
        }
      }
      ASSERT_EQ(arrays.size(), expected.size());
      for (size_t i = 0; i < arrays.size(); ++i) ExpectEqual(arrays[i], expected[i]);
    }
  }
}

TEST(ShardFileTest, LongRecordsAreReadInPieces) {
  MemoryFileSystem files;
  const ShardSnapshot snapshot = {44, {MakeArray(StateKind::kStart, 0, 0, {7, 400'007})}};
  ASSERT_TRUE(WriteShardFile(files, kPath, kHeader, snapshot).ok());
  auto reader = ShardFileReader::Open(files, kPath);
  ASSERT_TRUE(reader.ok());
  for (const Range range : {Range{7, 400'007}, Range{65'542, 65'544}, Range{0, 8},
                            Range{399'990, 500'000}, Range{100'000, 350'000}}) {
    std::vector<StateArray> arrays;
    ASSERT_TRUE((*reader)->ReadOverlapping(range, &arrays).ok());
    ASSERT_EQ(arrays.size(), 1u);
    ExpectEqual(arrays[0], MakeArray(StateKind::kStart, 0, 0,
                                     {std::max<int64_t>(range.begin, 7),
                                      std::min<int64_t>(range.end, 400'007)}));
  }
}

TEST(ShardFileTest, EveryFlippedBitIsRefused) {
  const std::string file = SmallFile();
  for (size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ASSERT_EQ(ReadBytes(damaged).code(), StatusCode::kDataLoss) << at << ", bit " << bit;
    }
  }
}

TEST(ShardFileTest, EveryTruncationAndExtensionIsRefused) {
  const std::string file = SmallFile();
  for (size_t n = 0; n < file.size(); ++n) {
    ASSERT_EQ(ReadBytes(file.substr(0, n)).code(), StatusCode::kDataLoss) << n;
  }
  for (size_t n = 1; n < 100; ++n) {
    ASSERT_EQ(ReadBytes(file + std::string(n, '\0')).code(), StatusCode::kDataLoss) << n;
    ASSERT_EQ(ReadBytes(file + file.substr(0, n)).code(), StatusCode::kDataLoss) << n;
  }
}

TEST(ShardFileTest, RecordsTakenOutOrSwappedAreRefused) {
  const std::string file = SmallFile();
  const size_t first = 72, second = first + 48 + 12, third = second + 48 + 4;
  ASSERT_EQ(file.substr(third, 4), "KREC");
  EXPECT_FALSE(ReadBytes(file.substr(0, first) + file.substr(second)).ok());
  EXPECT_FALSE(ReadBytes(file.substr(0, second) + file.substr(first)).ok());
  EXPECT_FALSE(ReadBytes(file.substr(0, first) + file.substr(second, third - second) +
                         file.substr(first, second - first) + file.substr(third))
                   .ok());
}

// Headers that lie, with checksums that are right: as if a program with a bug had written them.
TEST(ShardFileTest, ImpossibleRecordsAreRefusedBeforeAnythingIsAllocated) {
  const std::string file = SmallFile();
  const auto with = [&](size_t field, auto value) {
    std::string changed = file;
    std::memcpy(changed.data() + 72 + field, &value, sizeof(value));
    const uint32_t crc = MaskCrc32c(Crc32c(AsBytes(changed).subspan(72, 44)));
    std::memcpy(changed.data() + 72 + 44, &crc, sizeof(crc));
    return changed;
  };
  EXPECT_FALSE(ReadBytes(with(4, uint32_t{0})).ok());
  EXPECT_FALSE(ReadBytes(with(4, uint32_t{5})).ok());
  EXPECT_FALSE(ReadBytes(with(8, uint32_t{1} << 31)).ok());
  EXPECT_FALSE(ReadBytes(with(12, uint32_t{1} << 31)).ok());
  EXPECT_FALSE(ReadBytes(with(16, uint32_t{2})).ok());
  for (const int64_t value :
       {int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 36, (int64_t{1} << 62) + 3}) {
    EXPECT_FALSE(ReadBytes(with(24, value)).ok()) << value;
    EXPECT_FALSE(ReadBytes(with(32, value)).ok()) << value;
  }
  EXPECT_FALSE(ReadBytes(with(32, int64_t{0})).ok());
  EXPECT_FALSE(ReadBytes(with(32, int64_t{1} << 30)).ok());
}

TEST(ShardFileTest, RandomBytesAreRefused) {
  for (int seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    // Each starts as a good file does, and goes on for some length as one.
    const std::string good = SmallFile();
    std::string bytes = good.substr(0, rng.NextBelow(good.size()));
    const size_t more = 1 + rng.NextBelow(300);
    for (size_t i = 0; i < more; ++i) bytes += static_cast<char>(rng.NextUint32());
    ASSERT_FALSE(ReadBytes(bytes).ok()) << seed;
  }
}

TEST(ShardFileTest, OverlappingRecordsAreRefused) {
  for (const Range second : {Range{0, 4}, Range{3, 5}, Range{1, 2}}) {
    MemoryFileSystem files;
    const ShardSnapshot snapshot = {44,
                                    {MakeArray(StateKind::kRuleSlot, 0, 2, {0, 4}),
                                     MakeArray(StateKind::kRuleSlot, 0, 1, {0, 4}),
                                     MakeArray(StateKind::kRuleSlot, 0, 2, second)}};
    ASSERT_TRUE(WriteShardFile(files, kPath, kHeader, snapshot).ok());
    EXPECT_THAT(ReadAll(files).status().message(), HasSubstr("occurs twice"));
  }
}

TEST(ShardFileTest, DamageIsNamedWithFileRecordAndOffset) {
  std::string file = SmallFile();
  file[72 + 48 + 12 + 48] ^= 1;  // the number of the second record
  const Status status = ReadBytes(file);
  EXPECT_THAT(status.message(), HasSubstr("checkpoint file /shard, byte 180: record 1 (start "
                                          "weights of [103, 104)) is damaged"));
}

TEST(ShardFileTest, DamageElsewhereDoesNotStopARangeThatIsWhole) {
  MemoryFileSystem files;
  std::string file = SmallFile();
  file[72 + 48] ^= 1;  // positions [100, 103)
  files.Put(kPath, file);
  auto reader = ShardFileReader::Open(files, kPath);
  ASSERT_TRUE(reader.ok());
  std::vector<StateArray> arrays;
  EXPECT_TRUE((*reader)->ReadOverlapping({103, 104}, &arrays).ok());
  EXPECT_FALSE((*reader)->ReadOverlapping({102, 104}, &arrays).ok());
  EXPECT_FALSE((*reader)->Verify().ok());
}

TEST(ShardFileTest, FailedWriteNeverShowsAFile) {
  for (int n = 0;; ++n) {
    MemoryFileSystem files;
    files.FailFrom(n);
    const auto saved = WriteShardFile(files, kPath, kHeader, SmallSnapshot());
    if (saved.ok()) {
      EXPECT_GT(n, 10);
      break;
    }
    EXPECT_EQ(saved.status().code(), StatusCode::kResourceExhausted);
    files.PowerCut();
    EXPECT_FALSE(files.Exists(kPath)) << n;
  }
}

}  // namespace
}  // namespace kumo
