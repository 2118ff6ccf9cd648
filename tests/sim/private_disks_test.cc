// Servers with disks of their own in the simulation: jobs that go on with another number of
// servers, and after the loss of disks.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "tests/sim/cluster_harness.h"

namespace kumo::sim {
namespace {

using testing::HasSubstr;

const std::string kFolder = "/out/checkpoints";

SimSettings PrivateJob(int servers) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 12;
  settings.experiment.sync.push_codec = CodecId::kOneBit;  // each partition carries a residual
  settings.experiment.checkpoint.disks = CheckpointDisks::kPrivate;
  settings.experiment.checkpoint.every_rounds = 3;
  settings.experiment.checkpoint.keep = 3;
  settings.servers = servers;
  return settings;
}

SimResult Reference() {
  SimSettings settings = PrivateJob(1);
  settings.experiment.checkpoint.disks = CheckpointDisks::kShared;
  return RunJob(settings);
}

// Runs until it is stopped, which saves.
SimResult RunUntil(SimSettings settings, TimeUs stop_at, Disk* disk) {
  settings.stop_at = stop_at;
  const SimResult result = RunJob(settings, disk);
  EXPECT_EQ(result.status.code(), StatusCode::kUnavailable) << result.status.message();
  return result;
}

std::vector<std::string> FilesOn(const Disk& disk, int server, int64_t version) {
  const auto files = disk.own.at(server)->List(JoinPath(kFolder, CheckpointName(version)));
  return files.ok() ? *files : std::vector<std::string>();
}

// The round that a run began with.
int64_t First(const SimResult& result) {
  return result.rounds.empty() ? -1 : result.rounds.front();
}

std::string Newest(const Disk& disk, int server) {
  return FindLatest(*disk.own.at(server), kFolder).value();
}

TEST(PrivateDisks, ServerZerosHasWholeCheckpointsAndTheOthersTheirOwnFiles) {
  for (const int replicas : {1, 2}) {
    SimSettings settings = PrivateJob(3);
    settings.experiment.cluster.replicas = replicas;
    Disk disk;
    const SimResult result = RunJob(settings, &disk);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(Reference().weights));
    EXPECT_EQ(result.left_behind, std::vector<std::string>());
    EXPECT_EQ(FilesOn(disk, 0, result.version).size(), 4u);  // the manifest is one
    EXPECT_EQ(FilesOn(disk, 1, result.version).size(), replicas == 2 ? 3u : 2u);
    EXPECT_EQ(FilesOn(disk, 2, result.version).size(), 2u);
    for (const int server : {0, 1, 2}) {  // no more are kept than the experiment says
      EXPECT_EQ(ListCheckpoints(*disk.own[server], kFolder)->size(), 3u) << server;
    }
  }
}

TEST(PrivateDisks, OtherNumbersOfServersGoOnWithTheSameBits) {
  const SimResult reference = Reference();
  Disk disk;
  const SimResult two = RunUntil(PrivateJob(2), 1000 * kMillisecond, &disk);
  const SimResult three = RunUntil(PrivateJob(3), 1000 * kMillisecond, &disk);
  EXPECT_GT(two.version, 0);
  EXPECT_GT(three.version, two.version);
  const SimResult one = RunJob(PrivateJob(1), &disk);
  ExpectFinished(one);
  EXPECT_GT(one.version, three.version);
  EXPECT_EQ(Bits(one.weights), Bits(reference.weights));
}

TEST(PrivateDisks, OneThatIsLostBetweenTwoRunsCostsNothingWhereVersionsAreKeptTwice) {
  const SimResult reference = Reference();
  for (const int lost : {0, 1, 2}) {
    SimSettings settings = PrivateJob(3);
    settings.experiment.cluster.replicas = 2;
    Disk disk;
    const SimResult stopped = RunUntil(settings, 1200 * kMillisecond, &disk);
    disk.own.erase(lost);
    const SimResult result = RunJob(settings, &disk);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "disk " << lost;
    // It went on from where it was stopped.
    EXPECT_EQ(First(result), stopped.version) << "disk " << lost;
    EXPECT_GT(result.generation, stopped.generation) << "disk " << lost;
  }
}

TEST(PrivateDisks, OneThatIsLostWithItsServerCostsNothingWhereVersionsAreKeptTwice) {
  const SimResult reference = Reference();
  for (uint64_t seed = 1; seed <= ShareOf(40); ++seed) {
    SimSettings settings = PrivateJob(3);
    settings.seed = seed;
    settings.experiment.cluster.replicas = 2;
    settings.experiment.cluster.recovery = StateLoss::kExact;
    settings.faults.disk_losses = 1;
    settings.faults.kill_within = 1 * kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
  }
}

// Server 0's disk has every file, so the loss of another server's disk does no harm.
TEST(PrivateDisks, WithoutReplicasAnotherServersCanBeLost) {
  SimSettings settings = PrivateJob(3);
  Disk disk;
  const SimResult stopped = RunUntil(settings, 1200 * kMillisecond, &disk);
  disk.own.erase(1);
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  EXPECT_EQ(Bits(result.weights), Bits(Reference().weights));
  EXPECT_EQ(First(result), stopped.version);
}

TEST(PrivateDisks, WithoutReplicasTheLossOfServerZerosIsRefusedByTheFilesName) {
  SimSettings settings = PrivateJob(3);
  Disk disk;
  RunUntil(settings, 1200 * kMillisecond, &disk);
  disk.own.erase(0);
  const SimResult result = RunJob(settings, &disk);
  EXPECT_EQ(result.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(result.status.message(), HasSubstr("no server's disk has its file shard-00-of-03"));
  EXPECT_TRUE(result.rounds.empty());  // nothing was trained anew
}

TEST(PrivateDisks, OfACheckpointThatIsNotWholeTheNextOlderOneIsTaken) {
  const SimResult reference = Reference();
  SimSettings settings = PrivateJob(2);
  settings.experiment.cluster.replicas = 2;
  Disk disk;
  const SimResult stopped = RunUntil(settings, 1200 * kMillisecond, &disk);
  disk.own.erase(0);
  const std::string newest = Newest(disk, 1);
  for (const std::string& file : FilesOn(disk, 1, stopped.version)) {
    if (!file.starts_with("shard-00")) continue;
    ASSERT_TRUE(disk.own[1]->RemoveFile(JoinPath(JoinPath(kFolder, newest), file)).ok());
  }
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  EXPECT_LT(First(result), stopped.version);
  EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
}

// Fetched files are compared with the manifest: damage on the way, or on the other disk, is
// noticed.
TEST(PrivateDisks, ADamagedFileIsNotTaken) {
  SimSettings settings = PrivateJob(2);
  settings.experiment.cluster.replicas = 2;
  Disk disk;
  const SimResult stopped = RunUntil(settings, 1200 * kMillisecond, &disk);
  disk.own.erase(0);
  const std::string folder = JoinPath(kFolder, Newest(disk, 1));
  for (const std::string& file : FilesOn(disk, 1, stopped.version)) {
    if (!file.starts_with("shard-00")) continue;
    std::string* bytes = disk.own[1]->Contents(JoinPath(folder, file));
    ASSERT_NE(bytes, nullptr);
    (*bytes)[bytes->size() / 2] ^= 1;
  }
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  EXPECT_LT(First(result), stopped.version);
  EXPECT_EQ(Bits(result.weights), Bits(Reference().weights));
}

// A file that is damaged on server 0's disk is fetched again from the server that wrote it.
TEST(PrivateDisks, WhatIsDamagedOnServerZerosIsRepaired) {
  SimSettings settings = PrivateJob(2);
  Disk disk;
  const SimResult stopped = RunUntil(settings, 1200 * kMillisecond, &disk);
  const std::string folder = JoinPath(kFolder, Newest(disk, 0));
  for (const std::string& file : FilesOn(disk, 0, stopped.version)) {
    if (file.starts_with("shard-01")) (*disk.own[0]->Contents(JoinPath(folder, file)))[100] ^= 1;
  }
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  EXPECT_EQ(First(result), stopped.version);
  EXPECT_EQ(Bits(result.weights), Bits(Reference().weights));
}

// A job that starts anew leaves no checkpoint of the former one for a later survey to find.
TEST(PrivateDisks, AJobThatStartsAnewSetsEveryServersCheckpointsAside) {
  SimSettings settings = PrivateJob(2);
  settings.experiment.cluster.replicas = 2;
  Disk disk;
  RunUntil(settings, 1200 * kMillisecond, &disk);
  const std::string former = Newest(disk, 1);
  disk.own.erase(0);
  settings.experiment.checkpoint.resume.kind = ResumeFrom::Kind::kNever;
  settings.experiment.checkpoint.every_rounds = 0;
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  EXPECT_EQ(First(result), 0);
  EXPECT_TRUE(disk.own[1]->Exists(JoinPath("/out/earlier/1/checkpoints", former)));
  EXPECT_EQ(ListCheckpoints(*disk.own[1], kFolder)->size(), 1u);  // its own last one
}

}  // namespace
}  // namespace kumo::sim
