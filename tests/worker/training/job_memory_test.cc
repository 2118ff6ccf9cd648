#include "worker/training/job_memory.h"

#include <malloc.h>

#include "models/backend/host_memory.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/data/detection_files.h"
#include "tests/data/image_bytes.h"
#include "tests/worker/training/trainer_harness.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class JobMemoryTest : public TrainerTest {
 protected:
  static JobMemory Memory(const Experiment& e, int servers = 1) {
    Result<JobMemory> memory = MemoryOfJob(e, servers);
    CHECK(memory.ok()) << memory.status().message();
    return *std::move(memory);
  }
  static int64_t Part(const MemoryNeed& need, const std::string& what) {
    int64_t bytes = 0;
    for (const MemoryNeed::Part& part : need.parts()) {
      if (part.what.starts_with(what)) bytes += part.bytes;
    }
    return bytes;
  }
};

TEST_F(JobMemoryTest, WhatIsCountedForANetIsWhatItTakes) {
  for (const std::string name : {"mnist_mlp", "mnist_lenet", "cifar_convnet", "char_gpt_small"}) {
    for (const int batch : {1, 16, 17, 100}) {
      const model::Network network = *LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt",
                                                  {.vocabulary = 65, .classes = 20});
      CountedMemory counted;
      const auto counting = MakeCpuBackendIn(&counted);
      ASSERT_TRUE(Net::Make(network, batch, counting.get()).ok());
      HostMemory taken;
      const auto backend = MakeCpuBackendIn(&taken);
      const auto net = Net::Make(network, batch, backend.get());
      ASSERT_TRUE(net.ok());
      EXPECT_EQ(counted.bytes(), taken.ledger().bytes()) << name << ", minibatch " << batch;
      EXPECT_GT(counted.bytes(), 0);
    }
  }
}

// Neighbouring positions of a strided convolution have other taps, backward.
TEST_F(JobMemoryTest, ConvolutionsTakeLittleMemoryThatIsNotCounted) {
  const auto allocated = [] {
    const struct mallinfo2 info = mallinfo2();  // 0 under sanitizers
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  };
  for (const char* const layer :
       {"convolution { outputs: 4 kernel: 7 stride: 2 pad: 3 }",
        "convolution { outputs: 4 kernel: 3 stride: 3 dilation: 2 pad: 1 }",
        "convolution { outputs: 4 kernel: 3 pad: 1 }",
        "transposed_convolution { outputs: 4 kernel: 4 stride: 2 pad: 1 }"}) {
    const Result<model::Network> network = ParseNetwork(
        "name: 'n' input { channels: 3 height: 1024 width: 1024 } "
        "layers { name: 'first' convolution { outputs: 3 kernel: 1 } } "
        "layers { name: 'l' " +
            std::string(layer) +
            " } "
            "layers { name: 'pool' global_average_pooling {} } "
            "layers { name: 'fc' fully_connected { outputs: 4 } } "
            "layers { name: 'loss' softmax_cross_entropy {} }",
        "n");
    ASSERT_TRUE(network.ok()) << network.status().message();
    CountedMemory counted;  // which allocates nothing
    const auto counting = MakeCpuBackendIn(&counted);
    const int64_t before = allocated();
    const auto net = Net::Make(*network, 1, counting.get());
    ASSERT_TRUE(net.ok()) << net.status().message();
    EXPECT_LT(allocated() - before, int64_t{4} << 20) << layer;
  }
}

// Each thread has a block of a convolution's columns for itself: with many of them these are the
// largest temporary array.
TEST_F(JobMemoryTest, ManyThreadsTakeMoreForANet) {
  const model::Network network =
      *LoadNetwork(std::string(KUMO_ZOO) + "/voc_ssd300_slim.pbtxt", {.classes = 20});
  const auto bytes = [&](int threads) {
    CountedMemory counted;
    const auto counting = MakeCpuBackendIn(&counted, threads);
    EXPECT_TRUE(Net::Make(network, 8, counting.get()).ok());
    return counted.bytes();
  };
  EXPECT_GT(bytes(64), bytes(1));
}

TEST_F(JobMemoryTest, MinibatchesAreNeverLargerThanTheDataGive) {
  Experiment e = Block();  // 90 samples, two partitions
  e.sync.minibatch = 7;
  e.sync.block = 3;
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->train.samples, 7);
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->train.ahead, 4);
  e.data.prefetch = 1024;
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->train.ahead, 6);  // of two slices
  e.sync.minibatch = 1'000'000;
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->train.samples, 45);
  e.evaluation.minibatch = 10;
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->validation.samples, 10);
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->validation.ahead, 3);
  e.evaluation.minibatch = 100;
  EXPECT_EQ(MinibatchRooms::Of(e, 90, 23)->validation.samples, 23);
}

TEST_F(JobMemoryTest, ANormalisationOfASingleNumberIsNoted) {
  const auto notes = [](const std::string& layers, int minibatch) {
    Experiment e = Block();  // 90 samples, two partitions
    e.sync.minibatch = minibatch;
    e.sync.block = 1;
    const std::string text =
        "name: 'n' input { channels: 1 height: 28 width: 28 } layers { name: 'fc' fully_connected "
        "{ outputs: 4 } } " +
        layers + " layers { name: 'loss' softmax_cross_entropy {} }";
    const Result<model::Network> network = ParseNetwork(text, "n");
    CHECK(network.ok()) << network.status().message();
    return MemoryOfJob(e, *network, 1)->notes;
  };
  const std::string batch = "layers { name: 'bn' batch_normalisation {} }";
  EXPECT_THAT(notes(batch, 5), testing::IsEmpty());  // 45 samples of a partition: no rest
  EXPECT_THAT(notes(batch, 11), testing::ElementsAre(AllOf(HasSubstr("batch_normalisation \"bn\""),
                                                           HasSubstr("one sample"))));
  EXPECT_THAT(notes(batch, 1), testing::SizeIs(1));
  const std::string frozen = "layers { name: 'bn' trainable: false batch_normalisation {} }";
  EXPECT_THAT(notes(frozen, 1), testing::IsEmpty()) << "it takes its running statistics";
}

TEST_F(JobMemoryTest, RunningStatisticsThatMayOvershootAreNoted) {
  const auto notes = [](const std::string& norm, int staleness) {
    Experiment e = Block();
    e.sync.mode = SyncMode::kAsync;
    e.sync.staleness = staleness;
    e.sync.minibatch = 5;
    const std::string text =
        "name: 'n' input { channels: 1 height: 28 width: 28 } layers { name: 'fc' fully_connected "
        "{ outputs: 4 } } layers { name: 'bn' " +
        norm + " } layers { name: 'loss' softmax_cross_entropy {} }";
    const Result<model::Network> network = ParseNetwork(text, "n");
    CHECK(network.ok()) << network.status().message();
    return MemoryOfJob(e, *network, 1)->notes;
  };
  const std::string batch = "batch_normalisation {}";
  EXPECT_THAT(notes(batch, 0), testing::IsEmpty());
  EXPECT_THAT(notes(batch, 3), testing::IsEmpty());
  EXPECT_THAT(notes(batch, 4), testing::ElementsAre(AllOf(HasSubstr("sync.staleness = 4"),
                                                          HasSubstr("\"bn\" negative"))));
  EXPECT_THAT(notes("batch_normalisation { momentum: 0.99 }", 30), testing::IsEmpty());
  EXPECT_THAT(notes("batch_normalisation { momentum: 0.99 }", 40), testing::SizeIs(1));
  EXPECT_THAT(notes("trainable: false batch_normalisation {}", 1000), testing::IsEmpty());
}

TEST_F(JobMemoryTest, SettingsThatMakeADetectorWorseThanPublishedAreNoted) {
  const std::string images = folder_ + "/dogs";
  test::WriteFiles(images, test::VocLayout("",
                                           {{"1", {{"dog", {1, 1, 30, 20}}}},
                                            {"2", {{"dog", {2, 3, 7, 9}}}},
                                            {"3", {{"dog", {4, 3, 9, 9}}}}},
                                           ""));
  const auto notes = [&](const std::string& name, int minibatch, const std::string& weights) {
    Experiment e = Block();
    e.data.reader = DataReader::kVoc;
    e.data.train_images = e.data.validation_images = images;
    e.data.classes = 1;
    e.data.image_size = "3x300x300";
    e.sync.mode = SyncMode::kGradient;
    e.sync.partitions = 2;
    e.sync.minibatch = minibatch;
    e.network.file = std::string(KUMO_ZOO) + "/" + name + ".pbtxt";
    e.network.initial_weights = weights;
    return MemoryOfJob(e, *LoadNetwork(e.network.file, {.classes = 1}), 1)->notes;
  };
  EXPECT_THAT(notes("voc_ssd300_slim", 16, ""), testing::IsEmpty());
  for (const int minibatch : {4, 8, 15}) {
    EXPECT_THAT(notes("voc_ssd300_slim", minibatch, ""),
                testing::ElementsAre(
                    HasSubstr("matched boxes of " + std::to_string(2 * minibatch) + " images")));
  }
  EXPECT_THAT(notes("voc_ssd300", 16, ""),
              testing::ElementsAre(AllOf(HasSubstr("network.initial_weights is not set"),
                                         HasSubstr("chainercv, torchvision"))));
  EXPECT_THAT(notes("voc_ssd300", 16, "vgg16.npz"), testing::IsEmpty());
}

TEST_F(JobMemoryTest, MeansThatBeginAnewInShortBlocksAreNoted) {
  const auto notes = [&](OptimiserType type, bool resets, int block) {
    Experiment e = Block();
    e.optimiser.type = type;
    e.block.reset_local_state = resets;
    e.sync.block = block;
    return Memory(e).notes;
  };
  EXPECT_THAT(
      notes(OptimiserType::kAdamW, true, 8),
      testing::ElementsAre(AllOf(HasSubstr("block.reset_local_state"), HasSubstr("adamw"))));
  EXPECT_THAT(notes(OptimiserType::kAdamW, false, 8), testing::IsEmpty());
  EXPECT_THAT(notes(OptimiserType::kAdamW, true, 101), testing::IsEmpty());
  EXPECT_THAT(notes(OptimiserType::kMomentum, true, 8), testing::IsEmpty());
}

TEST_F(JobMemoryTest, DataThatAllWorkersMapIsNotAWorkers) {
  PosixFileSystem files;
  DigitSetOptions digits;
  digits.directory = folder_ + "/many";
  digits.train = 6000;  // 4.7 MB; the validation set is too small to be shared
  digits.validation = 23;
  ASSERT_TRUE(WriteDigitSet(files, digits).ok());
  Experiment e = Block();
  e.data.directory = digits.directory;
  const JobMemory own = Memory(e);
  EXPECT_EQ(Part(own.worker, "training data"), 6000 * (28 * 28 + 4));
  e.data.cache = folder_ + "/cache";
  const JobMemory shared = Memory(e);
  EXPECT_EQ(Part(shared.worker, "training data"), 6000 * 4) << "labels";
  EXPECT_EQ(Part(shared.worker, "validation data"), 23 * (28 * 28 + 4));
  e.data.cache = "/dev/null";
  EXPECT_EQ(Memory(e).worker.bytes(), own.worker.bytes());
}

TEST_F(JobMemoryTest, NotesOnTheDataComeWithIt) {
  const std::string images = folder_ + "/images";
  test::WriteFiles(images, test::ClassFolders(4, 2, {1, 28, 28}));
  test::WriteFile(images + "/class0/1.webp", {});
  Experiment e = Block();
  e.data.reader = DataReader::kImageFolder;
  e.data.classes = 2;
  e.data.train_images = e.data.validation_images = images;
  EXPECT_THAT(Memory(e).notes,
              testing::IsSupersetOf({"data.train_images: left out: 1 file (.webp 1)",
                                     "data.validation_images: left out: 1 file (.webp 1)"}));
}

TEST_F(JobMemoryTest, EachSettingCostsWhatItMakesLarger) {
  const Experiment e = Block();
  const JobMemory before = Memory(e);
  const auto grows = [&](const std::string& what, auto change) {
    Experiment changed = e;
    change(&changed);
    const JobMemory after = Memory(changed);
    EXPECT_GT(Part(after.worker, what) + Part(after.server, what),
              Part(before.worker, what) + Part(before.server, what))
        << what;
  };
  grows("activations", [](Experiment* x) { x->sync.minibatch = 40; });
  grows("training minibatches", [](Experiment* x) { x->data.prefetch = 6; });
  grows("validation minibatches", [](Experiment* x) { x->evaluation.minibatch = 20; });
  grows("carried state of partitions",
        [](Experiment* x) { x->sync.push_codec = CodecId::kOneBit; });
  grows("local optimiser", [](Experiment* x) { x->optimiser.type = OptimiserType::kAdam; });
  grows("the optimiser's matrices",
        [](Experiment* x) { x->optimiser.type = OptimiserType::kMuon; });
  grows("carried state of partitions", [](Experiment* x) {
    x->optimiser.type = OptimiserType::kAdam;
    x->block.reset_local_state = false;
  });
  grows("contributions", [](Experiment* x) { x->sync.partitions = 8; });
  grows("versions of the weights", [](Experiment* x) { x->block.nesterov = true; });
  grows("versions of the weights", [](Experiment* x) { x->evaluation.average_samples = 100; });
  grows("weights and gradients", [](Experiment* x) { x->evaluation.average_samples = 100; });
  grows("coded weights", [](Experiment* x) { x->sync.pull_codec = CodecId::kFp16; });
  grows("coded weights", [](Experiment* x) { x->sync.pull_codec = CodecId::kOneBit; });
  grows("relayed contributions", [](Experiment* x) {
    x->sync.push_codec = CodecId::kTopk;
    x->block.rule = BlockRule::kAverage;
  });
  grows("versions of the weights", [](Experiment* x) { x->sync.pull_codec = CodecId::kOneBit; });
  grows("weights and gradients", [](Experiment* x) { x->sync.pull_codec = CodecId::kOneBit; });
  grows("sum of the parts' gradients", [](Experiment* x) {
    x->sync.minibatch = 8;
    x->sync.minibatch_parts = 2;
  });
  Experiment delayed = e;
  delayed.sync.mode = SyncMode::kGradient;
  const int64_t of_a_round = Part(Memory(delayed).worker, "contributions to send");
  delayed.sync.overlap = 3;
  EXPECT_EQ(Part(Memory(delayed).worker, "contributions to send"), 4 * of_a_round);
  Experiment twice = e;
  twice.cluster.replicas = 2;
  EXPECT_GT(Part(Memory(twice, 2).server, "versions of another"), 0);
  EXPECT_LT(Part(Memory(e, 2).server, "versions"), Part(before.server, "versions"));
  Experiment alone = e;
  alone.cluster.workers = 1;
  EXPECT_GT(Part(Memory(alone).worker, "contributions"), Part(before.worker, "contributions"));
}

TEST_F(JobMemoryTest, TheLargestSettingsThatThereAreDoNotOverflow) {
  Experiment e = Block();
  e.network.file = folder_ + "/vast.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(*std::make_unique<PosixFileSystem>(), e.network.file, R"(
    name: "vast"
    input { channels: 1 height: 28 width: 28 }
    layers { name: "fc1" fully_connected { outputs: 2700000 } }
    layers { name: "fc2" fully_connected { outputs: 10 } }
    layers { name: "loss" softmax_cross_entropy {} })")
                  .ok());
  e.sync.partitions = 4096;
  e.sync.push_codec = CodecId::kOneBit;
  e.block.reset_local_state = false;
  e.optimiser.type = OptimiserType::kAdam;
  e.cluster.workers = 1;
  const JobMemory memory = Memory(e);
  const int64_t weights = int64_t{4} * 784 * 2'700'000;
  EXPECT_GT(memory.worker.bytes(), 4096 * 3 * weights);
  EXPECT_GT(memory.server.bytes(), 4096 * 3 * weights);
  const Status refused = memory.worker.CheckFits({uint64_t{1} << 40, "the machine"});
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("sync.partitions"), HasSubstr("TiB")));
}

}  // namespace
}  // namespace kumo
