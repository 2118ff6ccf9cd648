#include "server/disks/generation_file.h"

#include <gtest/gtest.h>

#include "common/job/protocol.h"

#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

Experiment InOut() {
  Experiment experiment;
  experiment.output.directory = "/out";
  return experiment;
}

TEST(GenerationFile, IsAboveAllThatWereReservedBefore) {
  MemoryFileSystem files;
  const Experiment experiment = InOut();
  ASSERT_TRUE(files.CreateDirectories("/out").ok());
  EXPECT_EQ(*ReserveGeneration(files, experiment, 0), 1u);
  EXPECT_EQ(*ReserveGeneration(files, experiment, 0), 2u);
  EXPECT_EQ(*ReserveGeneration(files, experiment, 7), 8u);
  KeepGeneration(files, experiment, 9);
  EXPECT_EQ(*ReserveGeneration(files, experiment, 3), 10u);
  *files.Contents("/out/generation") = "rubbish";
  EXPECT_EQ(*ReserveGeneration(files, experiment, 3), 4u);
}

TEST(GenerationFile, ANumberThatCannotBeReadNowIsNotUsedAgain) {
  BusyFileSystem files;
  ASSERT_TRUE(files.CreateDirectories("/out").ok());
  EXPECT_EQ(*ReserveGeneration(files, InOut(), 4), 5u);
  files.busy = "generation";
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kFailedPrecondition}) {
    files.code = code;
    EXPECT_EQ(ReserveGeneration(files, InOut(), 0).status().code(), code);
  }
  files.busy.clear();
  EXPECT_EQ(*ReserveGeneration(files, InOut(), 0), 6u);
}

TEST(GenerationFile, ANumberThatNoJobComesToIsNotCountedOn) {
  MemoryFileSystem files;
  files.Put("/out/generation", "4294967295\n");
  const auto reserved = ReserveGeneration(files, InOut(), 6);
  ASSERT_TRUE(reserved.ok());
  EXPECT_EQ(*reserved, 7u);
}

// Else every checkpoint would be refused as one of an impossible generation.
TEST(GenerationFile, AfterTheLastThereIsNone) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectories("/out").ok());
  EXPECT_EQ(*ReserveGeneration(files, InOut(), kLastGeneration - 1), kLastGeneration);
  EXPECT_EQ(ReserveGeneration(files, InOut(), 0).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kumo
