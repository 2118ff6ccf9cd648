// A trainer on drawn digits and a tiny network: what its tests share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "data/digits/digit_set.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/network.h"
#include "worker/training/trainer.h"

#include <unistd.h>

namespace kumo {

inline constexpr char kTinyNetwork[] = R"(
  name: "tiny"
  input { channels: 1 height: 28 width: 28 }
  layers { name: "pool" average_pooling { kernel: 4 } }
  layers { name: "flat" flatten {} }
  layers { name: "norm" batch_normalisation {} }
  layers { name: "fc1" fully_connected { outputs: 20 } }
  layers { name: "tanh" tanh {} }
  layers { name: "drop" dropout { ratio: 0.2 } }
  layers { name: "fc2" fully_connected { outputs: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// The same with fields of fc1.
inline std::string TinyNetworkWith(const std::string& fields) {
  std::string text = kTinyNetwork;
  return text.insert(text.find("name: \"fc1\"") + std::string_view("name: \"fc1\"").size(),
                     " " + fields);
}

// Linear: its gradients grow with the product of its weights, and never vanish.
inline constexpr char kUnboundedNetwork[] = R"(
  name: "unbounded"
  input { channels: 1 height: 28 width: 28 }
  layers { name: "pool" average_pooling { kernel: 4 } }
  layers { name: "fc1" fully_connected { outputs: 20 } }
  layers { name: "fc2" fully_connected { outputs: 20 } }
  layers { name: "fc3" fully_connected { outputs: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

class NoTime : public Clock {
 public:
  TimeUs NowUs() const override { return 0; }
};

// Drawn digits and a network file in a folder that goes away again.
class TrainerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = testing::TempDir() + "/kumo-trainer-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    PosixFileSystem files;
    DigitSetOptions digits;
    digits.directory = folder_;
    digits.train = 90;
    digits.validation = 23;
    ASSERT_TRUE(WriteDigitSet(files, digits).ok());
    ASSERT_TRUE(WriteFileAtomically(files, folder_ + "/tiny.pbtxt", kTinyNetwork).ok());
    ASSERT_TRUE(WriteFileAtomically(files, folder_ + "/diverging.pbtxt", kUnboundedNetwork).ok());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static Experiment Block() {
    Experiment e;
    e.job.name = "tiny";
    e.job.epochs = 3;
    e.job.seed = 4;
    e.network.file = folder_ + "/tiny.pbtxt";
    e.data.directory = folder_;
    e.sync.mode = SyncMode::kBlock;
    e.sync.partitions = 2;
    e.sync.minibatch = 7;
    e.sync.block = 3;
    e.optimiser.type = OptimiserType::kSgd;
    e.optimiser.weight_decay = 0.01f;
    e.schedule.type = ScheduleType::kPoly;
    e.schedule.learning_rate = 0.1;
    e.evaluation.minibatch = 8;
    e.cluster.chunk_kib = 2;
    e.cluster.servers = {"ipc://somewhere"};
    return e;
  }
  static Experiment Gradient() {
    Experiment e = Block();
    e.sync.mode = SyncMode::kGradient;
    return e;
  }
  static Experiment Augmented(Experiment e) {
    e.data.crop_pad = 3;
    e.data.pad_value = 40;
    e.data.flip = true;
    e.data.subtract_mean = true;
    return e;
  }

  // A trainer at the initial weights, holding both partitions.
  struct Worker {
    explicit Worker(const Experiment& e) : experiment(e) {
      Result<std::unique_ptr<Trainer>> made = Trainer::Make(e, &clock);
      CHECK(made.ok()) << made.status().message();
      trainer = std::move(made).value();
      shape = JobShape::Make(e, trainer->spec(), IdentityOf(e).servers).value();
      CHECK(trainer->Attach(&shape).ok());
      InstallAll(trainer->MakeInitialWeights().value().chunks);
      for (int p = 0; p < e.sync.partitions; ++p) trainer->Adopt({p, {}});
    }
    const ShardMap& map() const { return shape.map; }
    const ParameterLayout& layout() const { return trainer->spec().layout; }
    void InstallAll(const std::vector<Payload>& chunks, wire::Vector vector = wire::START) {
      for (const Chunk& chunk : map().chunks()) {
        trainer->Install(
            {chunk.index, vector, /*adds=*/false, &CodecOf(CodecId::kFp32), chunks[chunk.index]});
      }
    }
    // Adds numbers to the base weights, coded.
    void Add(const Codec& codec, const std::vector<float>& difference) {
      for (const Chunk& chunk : map().chunks()) {
        const auto part =
            std::span<const float>(difference).subspan(chunk.range.begin, chunk.range.size());
        auto coded = std::make_shared<std::vector<std::byte>>(codec.EncodedBytes(part.size()));
        CHECK_EQ(codec.Encode(part, {}, *coded), -1);
        trainer->Install({chunk.index,
                          wire::START,
                          /*adds=*/true,
                          &codec,
                          {coded, std::span<const std::byte>(*coded)}});
      }
    }
    Result<TrainedBlock> TryTrain(int64_t round, int partition, bool save = false) {
      const TrainAction action{partition, shape.plan.Round(round), save};
      KUMO_ASSIGN_OR_RETURN(TrainedBlock block, trainer->Train(action, on_coded));
      KUMO_RETURN_IF_ERROR(trainer->Code(action, &block));
      return block;
    }
    // Trains the front of the slice of `round`.
    TrainedAhead TrainAhead(int64_t round, int partition, bool save = false) {
      const RoundPlan plan = shape.plan.Round(round);
      TrainedAhead ahead = trainer->StepAhead(plan, partition).value();
      CHECK(trainer->KeepAhead({partition, plan, save}, &ahead).ok());
      return ahead;
    }
    TrainedBlock Train(int64_t round, int partition, bool save = false) {
      Result<TrainedBlock> block = TryTrain(round, partition, save);
      CHECK(block.ok()) << block.status().message();
      return std::move(block).value();
    }
    // A contribution as numbers of the flat vector.
    std::vector<float> Decode(const TrainedBlock& block, int64_t round) const {
      std::vector<float> all(layout().size());
      for (const Chunk& chunk : map().chunks()) {
        if (block.contributions[chunk.index].empty()) continue;
        const Codec& codec = shape.policy.PushCodec(shape.plan.Round(round), chunk);
        codec.Decode(block.contributions[chunk.index].bytes, chunk.range.size(), 0,
                     std::span<float>(all).subspan(chunk.range.begin, chunk.range.size()));
      }
      return all;
    }
    std::vector<float> InitialWeights() const {
      std::vector<float> all(layout().size());
      CHECK(trainer->net().InitialWeights(experiment.job.seed, layout(), all).ok());
      return all;
    }

    Contribution::OnCoded on_coded;
    Experiment experiment;
    NoTime clock;
    JobShape shape;
    std::unique_ptr<Trainer> trainer;
  };

  // Weights as the servers send them.
  static std::vector<Payload> Chunks(const Worker& worker, const std::vector<float>& weights) {
    std::vector<Payload> chunks;
    for (const Chunk& chunk : worker.map().chunks()) {
      auto copy = std::make_shared<std::vector<float>>(weights.begin() + chunk.range.begin,
                                                       weights.begin() + chunk.range.end);
      chunks.push_back({copy, std::as_bytes(std::span<const float>(*copy))});
    }
    return chunks;
  }

  // The same block written out plainly: steps on the minibatches of a slice from `weights` on, by
  // `step`, which is called after each with its place, its samples and the gradients.
  template <typename Step>
  static void WalkThrough(const Worker& worker, int64_t round, int partition,
                          std::vector<float>* weights, Step step) {
    const Experiment& e = worker.experiment;
    const auto backend = MakeCpuBackend(1);
    const auto net =
        Net::Make(*LoadNetwork(e.network.file), e.sync.minibatch, backend.get()).value();
    std::vector<float> gradients(worker.layout().size());
    ASSERT_TRUE(net->Bind(worker.layout(), weights->data(), gradients.data()).ok());
    BatchStream stream(&worker.trainer->datasets().trained(),
                       {.order = BatchOrder::kShuffled,
                        .seed = e.job.seed,
                        .minibatch = e.sync.minibatch,
                        .prefetch = 0,
                        .transforms = worker.trainer->datasets().transforms});
    ASSERT_TRUE(net->Connect(stream.fields(), worker.trainer->datasets().pixels).ok());
    const RoundPlan plan = worker.shape.plan.Round(round);
    stream.Start(plan.epoch, worker.shape.plan.PartitionSamples(plan, partition));
    for (uint64_t i = 0;; ++i) {
      const Minibatch batch = stream.Next().value();
      if (batch.size == 0) break;
      ASSERT_TRUE(net->Load(batch.samples()).ok());
      StepParameters parameters;
      parameters.streams = {e.job.seed, static_cast<uint64_t>(partition),
                            static_cast<uint64_t>(round), i};
      backend->SetStep(parameters);
      net->Train();
      step(static_cast<int>(i), static_cast<int>(batch.size), gradients);
    }
  }

  static bool SameBytes(const TrainedBlock& a, const TrainedBlock& b) {
    if (a.contributions.size() != b.contributions.size()) return false;
    for (size_t i = 0; i < a.contributions.size(); ++i) {
      if (!std::ranges::equal(a.contributions[i].bytes, b.contributions[i].bytes)) return false;
    }
    return true;
  }

  static inline std::string folder_;
};

}  // namespace kumo
