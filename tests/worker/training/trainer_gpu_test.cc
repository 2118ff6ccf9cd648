// A worker on a GPU, the simulated one: it trains on the numbers that a CPU trains on, and what it
// hands on early is what it has in the end.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/data/test_files.h"
#include "tests/simulated_gpu/simulated_gpu.h"
#include "tests/worker/training/trainer_harness.h"

namespace kumo {
namespace {

constexpr uint32_t kImages = 3'000;

class TrainerGpuTest : public TrainerTest, public testing::WithParamInterface<bool> {
 protected:
  static void SetUpTestSuite() {
    TrainerTest::SetUpTestSuite();
    test::WriteFile(folder_ + "/many", test::Idx({kImages, 28, 28}, test::Pattern(kImages * 784)));
    test::WriteFile(folder_ + "/many-labels", test::Idx({kImages}, test::Labels(kImages, 10)));
  }
  ~TrainerGpuTest() override { simulated_gpu::Reset(); }

  // With crops, flips and the mean or without.
  static Experiment Large(Device::Kind device) {
    Experiment e = GetParam() ? Augmented(Block()) : Block();
    e.data.train_images = folder_ + "/many";
    e.data.train_labels = folder_ + "/many-labels";
    e.network.device.kind = device;
    e.network.deterministic = true;
    return e;
  }
};
INSTANTIATE_TEST_SUITE_P(Augments, TrainerGpuTest, testing::Bool());

struct Trained {
  std::vector<TrainedBlock> blocks;
  MetricSums evaluated;
};

template <typename Worker>
Trained TrainSome(Worker worker) {
  Trained trained;
  for (const int64_t round : {0, 200}) trained.blocks.push_back(worker.Train(round, 1));
  trained.evaluated = worker.trainer->EvaluateAll(worker.InitialWeights()).value();
  return trained;
}

TEST_P(TrainerGpuTest, LossesAreTheCpusButForRounding) {
  const Trained cpu = TrainSome(Worker(Large(Device::Kind::kCpu)));
  const Trained gpu = TrainSome(Worker(Large(Device::Kind::kCuda)));
  for (size_t i = 0; i < cpu.blocks.size(); ++i) {
    const double loss = test::LossSum(cpu.blocks[i].metrics);
    EXPECT_NEAR(test::LossSum(gpu.blocks[i].metrics), loss, 1e-4 * loss) << i;
  }
  EXPECT_NEAR(test::LossSum(gpu.evaluated), test::LossSum(cpu.evaluated),
              1e-4 * test::LossSum(cpu.evaluated));
}

// A GPU's weights are those that the servers have worked out, to the bit.
TEST_F(TrainerTest, ADifferenceThatIsInstalledIsAddedOnEveryDevice) {
  for (const Codec* codec : AllCodecs()) {
    if (codec->codes_weights()) continue;
    SCOPED_TRACE(std::string(codec->name()));
    for (const Device::Kind device : {Device::Kind::kCpu, Device::Kind::kCuda}) {
      Experiment e = Block();
      e.network.device.kind = device;
      e.network.deterministic = true;
      Worker worker(e);
      Worker at_once(e);
      std::vector<float> weights = worker.InitialWeights();
      std::vector<float> difference(weights.size());
      Rng rng(1, RngPurpose::kTest);
      for (float& x : difference) x = 0.01f * rng.NextNormal();
      for (const Chunk& chunk : worker.map().chunks()) {
        const auto n = static_cast<size_t>(chunk.range.size());
        std::vector<std::byte> coded(codec->EncodedBytes(n));
        const auto part = std::span<float>(difference).subspan(chunk.range.begin, n);
        ASSERT_EQ(codec->Encode(part, {}, coded), -1);
        codec->DecodeAdd(coded, n, 0, 1.0f,
                         std::span<float>(weights).subspan(chunk.range.begin, n));
      }
      worker.Add(*codec, difference);
      at_once.InstallAll(Chunks(at_once, weights));
      EXPECT_TRUE(SameBytes(worker.Train(0, 1), at_once.Train(0, 1)));
    }
  }
}

// As the servers add contributions and step, to the bit.
TEST_F(TrainerTest, RelayedContributionsStepTheWeightsOnEveryDevice) {
  for (const CodecId id : {CodecId::kTopk, CodecId::kTopk2bit}) {
    for (const Device::Kind device : {Device::Kind::kCpu, Device::Kind::kCuda}) {
      Experiment e = Block();
      e.sync.push_codec = id;
      e.block.rule = BlockRule::kAverage;
      e.network.device.kind = device;
      e.network.deterministic = true;
      Worker worker(e);
      Worker at_once(e);
      ASSERT_EQ(worker.shape.policy.pull_form(), PullForm::kRelay);
      std::vector<float> weights = worker.InitialWeights();
      const std::vector<TrainedBlock> blocks = {worker.Train(0, 0), worker.Train(0, 1)};
      for (const Chunk& chunk : worker.map().chunks()) {
        const auto n = static_cast<size_t>(chunk.range.size());
        const auto relay = worker.shape.policy.RelayOf(worker.shape.plan, 1, chunk);
        if (!relay) continue;
        auto joined = std::make_shared<std::vector<std::byte>>();
        std::vector<float> sum(n);
        for (size_t p = 0; p < blocks.size(); ++p) {
          const auto bytes = blocks[p].contributions[chunk.index].bytes;
          relay->codec->DecodeAdd(bytes, n, 0, static_cast<float>(relay->samples[p]), sum);
          joined->insert(joined->end(), bytes.begin(), bytes.end());
        }
        const float scale = 1.0f / static_cast<float>(relay->round_samples);
        for (size_t i = 0; i < n; ++i) weights[chunk.range.begin + i] -= scale * sum[i];
        worker.trainer->Install({chunk.index,
                                 wire::START,
                                 /*adds=*/true,
                                 relay->codec,
                                 {joined, std::span<const std::byte>(*joined)},
                                 relay});
      }
      at_once.Train(0, 0);
      at_once.Train(0, 1);
      at_once.InstallAll(Chunks(at_once, weights));
      EXPECT_TRUE(SameBytes(worker.Train(1, 0), at_once.Train(1, 0)));
    }
  }
}

TEST_F(TrainerTest, AGpuComputesAMinibatchInPartsAsACpuDoes) {
  for (const SyncMode mode : {SyncMode::kGradient, SyncMode::kBlock}) {
    Experiment e = Block();
    e.sync.mode = mode;
    e.network.file = folder_ + "/diverging.pbtxt";
    e.network.deterministic = true;
    e.sync.minibatch = 12;
    e.sync.minibatch_parts = 3;
    e.optimiser.clip_norm = 0.5f;
    Worker cpu(e);
    e.network.device.kind = Device::Kind::kCuda;
    Worker gpu(e);
    for (int64_t round = 0; round < 3; ++round) {
      const std::vector<float> expected = cpu.Decode(cpu.Train(round, 1), round);
      EXPECT_THAT(gpu.Decode(gpu.Train(round, 1), round),
                  testing::Pointwise(testing::FloatNear(1e-5f), expected));
    }
  }
}

// The step is run, then recorded, then repeated.
TEST_F(TrainerTest, AGpusChunksAreHandedOnWhileTheStepGoesOn) {
  Experiment e = Gradient();
  e.network.device.kind = Device::Kind::kCuda;
  e.network.deterministic = true;
  e.cluster.chunk_kib = 1;
  e.sync.push_codec = CodecId::kOneBit;
  Worker at_the_end(e);
  Worker early(e);
  for (int64_t round = 0; round < 4; ++round) {
    std::map<int, Payload> handed;
    early.on_coded = [&](const std::vector<CodedChunk>& chunks) {
      EXPECT_FALSE(simulated_gpu::IsIdle()) << "the step has something left to do";
      for (const CodedChunk& coded : chunks) {
        EXPECT_TRUE(handed.emplace(coded.chunk, coded.payload).second);
      }
    };
    const TrainedBlock block = early.Train(round, 1);
    EXPECT_TRUE(SameBytes(block, at_the_end.Train(round, 1)));
    EXPECT_GE(handed.size(), 2u);
    for (const auto& [chunk, payload] : handed) {
      EXPECT_THAT(payload.bytes, testing::ElementsAreArray(block.contributions[chunk].bytes));
    }
  }
}

}  // namespace
}  // namespace kumo
