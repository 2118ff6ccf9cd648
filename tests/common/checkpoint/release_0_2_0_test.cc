// A checkpoint of release 0.2.0 (commit a8f8d63) is read, and is where its job would go on.
//
// The network has 15 weights: 4 inputs, 3 outputs. Two partitions train in block mode with block
// momentum; pushes have 1 bit for each number. release_0_2_0/ has the manifest as it was written,
// and the bytes of the shard's file in hexadecimal.
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/resume_point.h"
#include "common/settings/experiment_text.h"
#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::IsEmpty;

constexpr char kOldFolder[] = "/out/checkpoints";
constexpr char kOldName[] = "round-000000000006";

std::string OldFile(const std::string& name) {
  std::ifstream file(std::string(KUMO_SOURCE_DIRECTORY) +
                     "/tests/common/checkpoint/release_0_2_0/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string BytesOfHex(const std::string& hex) {
  std::string bytes, digits;
  for (const char c : hex) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

class Release020Checkpoint : public testing::Test {
 protected:
  Release020Checkpoint() {
    const std::string folder = std::string(kOldFolder) + "/" + kOldName;
    EXPECT_TRUE(files_.CreateDirectories(folder).ok());
    files_.Put(folder + "/MANIFEST", OldFile("MANIFEST"));
    files_.Put(folder + "/shard-00-of-01.generation-1", BytesOfHex(OldFile("shard.hex")));
  }

  // The job of the checkpoint, with these settings today.
  static Experiment Today(const checkpoint::Manifest& manifest) {
    Experiment experiment = ExperimentOfText(manifest.experiment_text()).value();
    experiment.job.name = "tiny";
    experiment.output.directory = "/out";
    return experiment;
  }

  MemoryFileSystem files_;
};

TEST_F(Release020Checkpoint, VerifiesAndNamesItsTensors) {
  const auto manifest = VerifyCheckpoint(files_, kOldFolder, kOldName);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_EQ(manifest->version(), 6);
  EXPECT_EQ(manifest->progress().samples(), 96);
  const auto layout = LayoutOf(*manifest);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  ASSERT_EQ(layout->tensors().size(), 2u);
  EXPECT_EQ(layout->tensors()[0].name, "fc.weight");
  EXPECT_THAT(layout->tensors()[0].shape, ElementsAre(3, 4));
}

TEST_F(Release020Checkpoint, HasItsWeightsMomentumAndResiduals) {
  const auto manifest = ReadManifest(files_, kOldFolder, kOldName);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  const auto snapshot = ReadSnapshot(files_, kOldFolder, *manifest, {16, 19});
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  const auto numbers = [&](StateKind kind, int partition) {
    for (const StateArray& array : snapshot->arrays) {
      if (array.kind != kind || array.partition != partition) continue;
      EXPECT_EQ(array.begin, 16);
      return std::vector<float>(array.numbers.begin(), array.numbers.end());
    }
    return std::vector<float>();
  };
  EXPECT_EQ(snapshot->arrays.size(), 4u);
  EXPECT_THAT(numbers(StateKind::kStart, 0),
              ElementsAre(FloatEq(0.049415253f), FloatEq(0.1005944f), FloatEq(-0.15000971f)));
  EXPECT_THAT(numbers(StateKind::kRuleSlot, 0),
              ElementsAre(FloatEq(-0.011975615f), FloatEq(-0.0062270276f), FloatEq(0.018202651f)));
  EXPECT_THAT(numbers(StateKind::kPartitionState, 1),
              ElementsAre(FloatEq(0.0023452621f), 0.0f, FloatEq(-0.002345264f)));
}

TEST_F(Release020Checkpoint, IsTheOneFromWhichItsJobGoesOn) {
  const auto manifest = ReadManifest(files_, kOldFolder, kOldName);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  const auto found = FindCheckpointToResume(files_, Today(*manifest));
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(found->manifest->version(), 6);
  EXPECT_FALSE(found->continuation);  // settings of later releases have their defaults
  EXPECT_FALSE(found->finished);
  EXPECT_THAT(found->skipped, IsEmpty());
}

}  // namespace
}  // namespace kumo
