
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/data/detection_files.h"
#include "tests/data/test_files.h"
#include "tests/worker/training/trainer_harness.h"
#include "worker/training/trainer.h"

namespace kumo {

namespace {

using testing::HasSubstr;

TEST_F(TrainerTest, KnowsTheJob) {
  const Worker worker(Block());
  EXPECT_EQ(worker.trainer->spec().train_samples, 90);
  EXPECT_EQ(worker.trainer->spec().validation_samples, 23);
  EXPECT_EQ(worker.trainer->spec().optimiser_slots, 0);
  Experiment keep = Block();
  keep.optimiser.type = OptimiserType::kAdam;
  keep.block.reset_local_state = false;
  EXPECT_EQ(Worker(keep).trainer->spec().optimiser_slots, 2);
}

TEST_F(TrainerTest, AGradientRoundsContributionIsTheNetsGradient) {
  for (const auto& [round, augments] : {std::pair{0, false}, {9, false}, {0, true}, {9, true}}) {
    for (const int partition : {0, 1}) {
      Worker worker(augments ? Augmented(Gradient()) : Gradient());
      const std::vector<float> got = worker.Decode(worker.Train(round, partition), round);
      std::vector<float> weights = worker.InitialWeights();
      const std::vector<float> start = weights;
      std::vector<float> expected;
      WalkThrough(worker, round, partition, &weights,
                  [&](int, int, const std::vector<float>& gradients) { expected = gradients; });
      // Statistics are averaged: their contribution is how far they moved.
      const Range statistics = worker.layout().segment(Segment::kStatistics);
      ASSERT_GT(statistics.size(), 0);
      for (int64_t i = statistics.begin; i < statistics.end; ++i) {
        expected[i] = start[i] - weights[i];
      }
      EXPECT_EQ(got, expected);
    }
  }
}

// Layers with more numbers than a chunk; where clipping must know all gradients, none comes early.
TEST_F(TrainerTest, AGradientsChunksAreHandedOnWhileTheStepGoesOn) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kOneBit}) {
    for (const float clip_norm : {0.0f, 0.5f}) {
      Experiment e = Gradient();
      e.cluster.chunk_kib = 1;
      e.sync.push_codec = codec;
      e.optimiser.clip_norm = clip_norm;
      Worker at_the_end(e);
      Worker early(e);
      for (int64_t round = 0; round < 3; ++round) {
        std::map<int, Payload> handed;
        int calls = 0;
        early.on_coded = [&](const std::vector<CodedChunk>& chunks) {
          ++calls;
          for (const CodedChunk& coded : chunks) {
            EXPECT_TRUE(handed.emplace(coded.chunk, coded.payload).second);
          }
        };
        const TrainedBlock block = early.Train(round, 1, true);
        EXPECT_TRUE(SameBytes(block, at_the_end.Train(round, 1, true)));
        for (const auto& [chunk, payload] : handed) {
          EXPECT_THAT(payload.bytes, testing::ElementsAreArray(block.contributions[chunk].bytes));
        }
        EXPECT_FALSE(handed.contains(0));
        // fc2, and what of fc1 no other layer shares a chunk with.
        EXPECT_EQ(calls, clip_norm > 0 ? 0 : 2);
        EXPECT_EQ(handed.empty(), clip_norm > 0);
      }
    }
  }
}

// With rates per minibatch and none of momentum, and in CNTK's terms: rates per sample, momentum by
// a time constant.
TEST_F(TrainerTest, ABlocksContributionIsTheSumOfItsSteps) {
  Experiment cntk = Block();
  cntk.optimiser.type = OptimiserType::kMomentum;
  cntk.schedule.learning_rate = 0.01;
  cntk.schedule.per = RatePer::kSample;
  cntk.schedule.time_constants = {20};
  for (const Experiment& e : {Block(), cntk}) {
    for (const int64_t round : {int64_t{0}, int64_t{2}, int64_t{4}}) {  // 2: a short one
      for (const int partition : {0, 1}) {
        Worker worker(e);
        const RoundPlan plan = worker.shape.plan.Round(round);
        const Schedule schedule = Schedule::Make(e.schedule, 90, e.job.epochs).value();
        std::vector<float> weights = worker.InitialWeights();
        const std::vector<float> start = weights;
        std::vector<float> velocity(weights.size());
        int steps = 0;
        WalkThrough(worker, round, partition, &weights,
                    [&](int i, int size, const std::vector<float>& g) {
                      const int64_t position = std::min<int64_t>(
                          plan.first_sample + i * 2 * 7, plan.first_sample + plan.samples.size());
                      const float rate = schedule.RateAt(position, size);
                      const float momentum = e.optimiser.type == OptimiserType::kSgd
                                                 ? 0.0f
                                                 : std::exp(-0.05f * static_cast<float>(size));
                      const Range decayed = worker.layout().segment(Segment::kDecayed);
                      const Range undecayed = worker.layout().segment(Segment::kUndecayed);
                      for (int64_t at = 0; at < undecayed.end; ++at) {
                        const float decay = at < decayed.end ? 0.01f * weights[at] : 0.0f;
                        velocity[at] = momentum * velocity[at] + g[at] + decay;
                        weights[at] -= rate * velocity[at];
                      }
                      ++steps;
                    });
        const int64_t samples = worker.shape.plan.PartitionSamples(plan, partition).size();
        ASSERT_EQ(steps, (samples + 6) / 7);
        const TrainedBlock block = worker.Train(round, partition);
        EXPECT_EQ(block.metrics.samples, samples);
        const std::vector<float> got = worker.Decode(block, round);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], start[i] - weights[i], 1e-6f * (1 + std::abs(start[i]))) << i;
        }
      }
    }
  }
}

TEST_F(TrainerTest, AStepHasTheFactorsOfItsLayer) {
  PosixFileSystem files;
  Experiment e = Block();
  e.network.file = folder_ + "/factors.pbtxt";
  ASSERT_TRUE(
      WriteFileAtomically(files, e.network.file,
                          TinyNetworkWith("learning_rate_factor: 3 weight_decay_factor: 0.25"))
          .ok());
  Worker worker(e);
  const ParameterLayout& layout = worker.layout();
  ASSERT_EQ(layout.groups().size(), 5u);
  const Schedule schedule = Schedule::Make(e.schedule, 90, e.job.epochs).value();
  const RoundPlan plan = worker.shape.plan.Round(0);
  std::vector<float> weights = worker.InitialWeights();
  const std::vector<float> start = weights;
  WalkThrough(worker, 0, 1, &weights, [&](int i, int size, const std::vector<float>& g) {
    const float rate = schedule.RateAt(plan.first_sample + i * 2 * 7, size);
    for (size_t t = 0; t < layout.tensors().size(); ++t) {
      const TensorSpec& tensor = layout.tensors()[t];
      if (!tensor.trained()) continue;
      const bool has_factors = tensor.name.starts_with("fc1.");
      const float decay = tensor.segment != Segment::kDecayed ? 0.0f
                          : has_factors                       ? 0.0025f
                                                              : 0.01f;
      const Range range = layout.tensor(static_cast<int>(t));
      for (int64_t at = range.begin; at < range.end; ++at) {
        weights[at] -= (has_factors ? 3 * rate : rate) * (g[at] + decay * weights[at]);
      }
    }
  });
  const std::vector<float> got = worker.Decode(worker.Train(0, 1), 0);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], start[i] - weights[i], 1e-6f * (1 + std::abs(start[i]))) << i;
  }
}

TEST_F(TrainerTest, FactorsOf1ThatAreWrittenOutChangeNoBit) {
  PosixFileSystem files;
  Experiment e = Block();
  e.optimiser.type = OptimiserType::kAdamW;
  e.sync.push_codec = CodecId::kOneBit;
  Worker without(e);
  e.network.file = folder_ + "/ones.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(files, e.network.file,
                                  TinyNetworkWith("trainable: true learning_rate_factor: 1 "
                                                  "weight_decay_factor: 1"))
                  .ok());
  Worker with(e);
  EXPECT_EQ(with.layout().fingerprint(), without.layout().fingerprint());
  for (int64_t round = 0; round < 3; ++round) {
    EXPECT_TRUE(SameBytes(with.Train(round, 0), without.Train(round, 0)));
  }
}

// fc1 is frozen; norm, below it, is not.
TEST_F(TrainerTest, AFrozenLayerContributesAndCarriesNothing) {
  PosixFileSystem files;
  const std::string network = folder_ + "/frozen.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(files, network, TinyNetworkWith("trainable: false")).ok());
  for (const CodecId codec : {CodecId::kFp32, CodecId::kInt8, CodecId::kOneBit}) {
    for (Experiment e : {Gradient(), Block()}) {
      e.network.file = network;
      e.optimiser.type = OptimiserType::kMomentum;
      e.block.reset_local_state = false;
      e.sync.push_codec = codec;
      e.cluster.chunk_kib = 1;
      Worker worker(e);
      worker.on_coded = [&](const std::vector<CodedChunk>& chunks) {
        for (const CodedChunk& coded : chunks) {
          EXPECT_FALSE(worker.map().chunks()[coded.chunk].frozen());
        }
      };
      for (int64_t round = 0; round < 2; ++round) {
        const TrainedBlock block = worker.Train(round, 1, /*save=*/true);
        int frozen = 0;
        for (const Chunk& chunk : worker.map().chunks()) {
          EXPECT_EQ(block.contributions[chunk.index].empty(), chunk.frozen());
          frozen += chunk.frozen() ? 1 : 0;
        }
        EXPECT_EQ(frozen, 3) << "two of 49 x 20 weights, and one of 20 biases";
        for (const CarriedArray& array : block.carried) {
          EXPECT_TRUE(worker.map().chunks()[array.chunk].trained());
        }
      }
    }
  }
}

// On a network whose layers treat each sample for itself. With a limit of the gradients' norm,
// which is that of the whole minibatch's gradients.
TEST_F(TrainerTest, AMinibatchInPartsIsTheWholeMinibatchButForRounding) {
  for (const SyncMode mode : {SyncMode::kGradient, SyncMode::kBlock}) {
    Experiment e = Block();
    e.sync.mode = mode;
    e.network.file = folder_ + "/diverging.pbtxt";
    e.sync.minibatch = 12;
    e.optimiser.type = OptimiserType::kMomentum;
    e.optimiser.clip_norm = 0.5f;
    Worker whole(e);
    for (const int parts : {2, 4, 12}) {
      e.sync.minibatch_parts = parts;
      Worker in_parts(e);
      const int64_t last = whole.shape.plan.rounds() - 1;
      for (const int64_t round : {int64_t{0}, last}) {
        SCOPED_TRACE(testing::Message() << parts << " parts, round " << round);
        const TrainedBlock expected = whole.Train(round, 1);
        const TrainedBlock block = in_parts.Train(round, 1);
        EXPECT_EQ(block.metrics.samples, expected.metrics.samples);
        EXPECT_NEAR(test::LossSum(block.metrics), test::LossSum(expected.metrics), 1e-4);
        EXPECT_THAT(in_parts.Decode(block, round),
                    testing::Pointwise(testing::FloatNear(1e-5f), whole.Decode(expected, round)));
      }
    }
  }
}

TEST_F(TrainerTest, APartHasItsPlaceInTheMinibatchAndStreamsOfItsOwn) {
  Experiment e = Block();
  e.sync.minibatch = 12;
  e.sync.minibatch_parts = 3;
  const auto place = [&](int64_t trained) {
    const BlockStep step = StepAt(e, trained, /*block=*/29);
    return std::tuple(step.minibatch, step.part, step.samples);
  };
  EXPECT_EQ(place(0), std::tuple(0, 0, 12));
  EXPECT_EQ(place(8), std::tuple(0, 2, 12));
  EXPECT_EQ(place(20), std::tuple(1, 2, 12));
  EXPECT_EQ(place(28), std::tuple(2, 1, 5));
  const OpenedJob job = OpenJob(e).value();
  const StepParameters step = ParametersOf(e, job, {}, 0, StepAt(e, 20, 29), /*steps_before=*/0);
  EXPECT_EQ(step.streams.step, 5u);
  EXPECT_EQ(step.decayed.step, 2);
}

TEST_F(TrainerTest, WhatCodingLosesComesWithTheNextRounds) {
  for (const CodecId codec : {CodecId::kInt8, CodecId::kOneBit, CodecId::kBf16}) {
    Experiment e = Gradient();
    Worker exact(e);
    e.sync.push_codec = codec;
    Worker coded(e);
    std::vector<double> sent(exact.layout().size());
    std::vector<double> wanted(exact.layout().size());
    std::vector<float> residual(exact.layout().size());
    for (int64_t round = 0; round < 6; ++round) {
      const std::vector<float> x = exact.Decode(exact.Train(round, 1), round);
      const TrainedBlock block = coded.Train(round, 1, true);
      const std::vector<float> y = coded.Decode(block, round);
      for (size_t i = 0; i < x.size(); ++i) {
        sent[i] += y[i];
        wanted[i] += x[i];
      }
      for (const CarriedArray& array : block.carried) {
        ASSERT_EQ(array.index, 0);
        const Range range = coded.map().chunks()[array.chunk].range;
        ASSERT_EQ(array.payload.bytes.size(), range.size() * sizeof(float));
        std::memcpy(residual.data() + range.begin, array.payload.bytes.data(),
                    array.payload.bytes.size());
      }
      double off = 0;
      double lost = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(sent[i] + residual[i], wanted[i], 1e-5) << WordOf(codec) << ", round " << round;
        off += std::abs(sent[i] - wanted[i]);
        lost += std::abs(residual[i]);
      }
      EXPECT_GT(lost, 0);
      EXPECT_NEAR(off, lost, 1e-3 * lost + 1e-4);
    }
  }
}

constexpr char kTinyDetector[] = R"(
  name: "tiny_detector"
  input { channels: 3 height: 20 width: 30 }
  layers { name: "trunk" convolution { outputs: 4 kernel: 3 stride: 2 pad: 1 } }
  layers { name: "offsets" inputs: "trunk" convolution { outputs: 16 kernel: 3 pad: 1 } }
  layers { name: "scores" inputs: "trunk" convolution { outputs: 12 kernel: 3 pad: 1 } }
  layers { name: "loss" inputs: "offsets" inputs: "scores"
           multibox { classes: 2 maps { step: 2 size: 8 next_size: 11 ratios: 2 } } })";

// Servers discard the contribution of a gradient or a block without an object, whose weight is 0.
TEST_F(TrainerTest, WhatCodingLostWaitsWhileContributionsHaveNoWeight) {
  std::vector<test::VocImage> images;
  for (int i = 0; i < 24; ++i) {
    images.push_back({"image" + std::to_string(i), {}});
    if (i % 3 == 0) images.back().objects = {{i % 2 == 0 ? "cat" : "dog", {4, 4, 15, 13}}};
  }
  test::WriteFiles(folder_ + "/voc", test::VocLayout("", images, "trainval"));
  PosixFileSystem files;
  ASSERT_TRUE(WriteFileAtomically(files, folder_ + "/detector.pbtxt", kTinyDetector).ok());
  // Minibatches in parts, too.
  for (const auto& [mode, parts] :
       {std::pair{SyncMode::kGradient, 1}, {SyncMode::kGradient, 2}, {SyncMode::kBlock, 1}}) {
    for (const CodecId codec : {CodecId::kInt8, CodecId::kOneBit, CodecId::kTopk2bit}) {
      Experiment e = Block();
      e.sync.mode = mode;
      e.sync.minibatch = e.sync.minibatch_parts = parts;
      e.sync.block = 2;
      e.sync.residual_factor = 1;
      e.cluster.chunk_kib = 1;
      e.network.file = folder_ + "/detector.pbtxt";
      e.data.reader = DataReader::kVoc;
      e.data.train_images = "voc";
      e.data.validation_images = "voc:trainval";
      e.data.classes = 2;
      Worker exact(e);
      e.sync.push_codec = codec;
      Worker coded(e);
      coded.on_coded = [](const std::vector<CodedChunk>&) {};
      std::vector<double> sent(exact.layout().size()), wanted(exact.layout().size());
      std::vector<float> residual(exact.layout().size());
      int discarded = 0, counted = 0;
      for (int64_t round = 0; round < exact.shape.plan.rounds(); ++round) {
        const std::vector<float> x = exact.Decode(exact.Train(round, 1), round);
        const TrainedBlock block = coded.Train(round, 1, true);
        const std::vector<float> y = coded.Decode(block, round);
        ASSERT_TRUE(block.weight);
        ++(*block.weight > 0 ? counted : discarded);
        EXPECT_EQ(block.contributions[0].empty(), *block.weight == 0);
        for (size_t i = 0; *block.weight > 0 && i < x.size(); ++i) {
          sent[i] += y[i];
          wanted[i] += x[i];
        }
        for (const CarriedArray& array : block.carried) {
          ASSERT_EQ(array.index, 0);
          const Range range = coded.map().chunks()[array.chunk].range;
          std::memcpy(residual.data() + range.begin, array.payload.bytes.data(),
                      array.payload.bytes.size());
        }
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(sent[i] + residual[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i])))
              << WordOf(mode) << ", " << parts << " parts, " << WordOf(codec) << ", round "
              << round;
        }
      }
      EXPECT_GT(discarded, 4);
      EXPECT_GT(counted, 4);
    }
  }
}

// The default boxes that an object of (left, top, right, bottom) has in kTinyDetector, in plain
// loops: a threshold of .5, one object in an image.
int64_t BoxesOfObject(double left, double top, double right, double bottom) {
  const double middle = std::sqrt(8.0 * 11), wide = 8 * std::sqrt(2.0), flat = 8 / std::sqrt(2.0);
  const std::pair<double, double> sizes[] = {{8, 8}, {middle, middle}, {wide, flat}, {flat, wide}};
  int64_t count = 0;
  for (int row = 0; row < 10; ++row) {
    for (int column = 0; column < 15; ++column) {
      for (const auto& [width, height] : sizes) {
        const double x = 2 * column + 1, y = 2 * row + 1;
        const double across = std::min(right, x + width / 2) - std::max(left, x - width / 2);
        const double down = std::min(bottom, y + height / 2) - std::max(top, y - height / 2);
        const double both = std::max(across, 0.0) * std::max(down, 0.0);
        const double either = (right - left) * (bottom - top) + width * height - both;
        if (both / either >= 0.5) ++count;
      }
    }
  }
  return count;
}

TEST_F(TrainerTest, ABlockWeighsTheBoxesWithAnObjectOfAllItsSteps) {
  std::vector<test::VocImage> images;
  for (int i = 0; i < 24; ++i) {
    images.push_back({"image" + std::to_string(i), {}});
    if (i % 3 != 0) images.back().objects = {{i % 2 == 0 ? "cat" : "dog", {4, 4, 15, 13}}};
  }
  test::WriteFiles(folder_ + "/voc", test::VocLayout("", images, "trainval"));
  PosixFileSystem files;
  ASSERT_TRUE(WriteFileAtomically(files, folder_ + "/detector.pbtxt", kTinyDetector).ok());
  Experiment e = Block();
  e.sync.partitions = 2;
  e.sync.minibatch = 2;
  e.sync.block = 2;
  e.network.file = folder_ + "/detector.pbtxt";
  e.data.reader = DataReader::kVoc;
  e.data.train_images = "voc";
  e.data.validation_images = "voc:trainval";
  e.data.classes = 2;
  Worker worker(e);
  const int64_t of_object = BoxesOfObject(3, 3, 15, 13);
  ASSERT_GT(of_object, 2);
  // Three rounds of two blocks of four images are an epoch, which has 16 images with an object.
  int64_t epoch = 0;
  for (int64_t round = 0; round < 3; ++round) {
    for (int p = 0; p < 2; ++p) {
      const TrainedBlock block = worker.Train(round, p);
      ASSERT_TRUE(block.weight);
      EXPECT_EQ(*block.weight % of_object, 0);
      EXPECT_LE(*block.weight, 4 * of_object);
      epoch += *block.weight;
    }
  }
  EXPECT_EQ(epoch, 16 * of_object);
}

// With images as they are, and cropped, mirrored and without their mean.
class TrainerAugmentationTest : public TrainerTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Augments, TrainerAugmentationTest, testing::Bool());

TEST_P(TrainerAugmentationTest, OrderAndPrefetchingDoNotMatter) {
  Experiment e = GetParam() ? Augmented(Block()) : Block();
  e.sync.push_codec = CodecId::kOneBit;
  Worker reference(e);
  std::map<std::pair<int64_t, int>, TrainedBlock> blocks;
  for (int64_t round = 0; round < 4; ++round) {
    for (int p = 0; p < 2; ++p) blocks[{round, p}] = reference.Train(round, p);
  }
  for (const int prefetch : {0, 1, 4, 9}) {
    e.data.prefetch = prefetch;
    Worker backwards(e);
    for (int64_t round = 0; round < 4; ++round) {
      for (const int p : {1, 0}) {
        EXPECT_TRUE(SameBytes(backwards.Train(round, p), blocks[{round, p}]))
            << "prefetch " << prefetch << ", round " << round << ", partition " << p;
      }
    }
    // Alone, as on a worker that has one lease, and each round twice.
    Worker alone(e);
    alone.trainer->Drop(0);
    for (int64_t round = 0; round < 4; ++round) {
      EXPECT_TRUE(SameBytes(alone.Train(round, 1), blocks[{round, 1}])) << round;
    }
  }
}

TEST_F(TrainerTest, ABlockComputedAgainIsTheSame) {
  Worker worker(Block());
  const TrainedBlock once = worker.Train(1, 0);
  (void)worker.Train(3, 1);
  (void)worker.Train(0, 0);
  EXPECT_TRUE(SameBytes(worker.Train(1, 0), once));
  EXPECT_FALSE(SameBytes(worker.Train(1, 1), once));
}

class CarriedStateTest : public TrainerTest, public testing::WithParamInterface<OptimiserType> {};
INSTANTIATE_TEST_SUITE_P(Optimisers, CarriedStateTest,
                         testing::Values(OptimiserType::kAdam, OptimiserType::kMuon));

TEST_P(CarriedStateTest, MovesToAnotherWorker) {
  Experiment e = Block();
  e.sync.push_codec = CodecId::kOneBit;
  e.optimiser.type = GetParam();
  e.block.reset_local_state = false;
  Worker stays(e);
  Worker moves(e);
  Worker forgets(e);
  for (int64_t round = 0; round < 2; ++round) {
    const TrainedBlock block = stays.Train(round, 1, round == 1);
    ASSERT_EQ(block.carried.empty(), round == 0);
    if (round == 0) continue;
    AdoptAction adopt{1, {}};
    for (const CarriedArray& array : block.carried) {
      adopt.arrays.push_back({array.chunk, array.index, array.payload});
    }
    moves.trainer->Adopt(adopt);
  }
  const TrainedBlock expected = stays.Train(2, 1);
  EXPECT_TRUE(SameBytes(moves.Train(2, 1), expected));
  EXPECT_FALSE(SameBytes(forgets.Train(2, 1), expected));
}

// Slots that were lost with their worker are zero, and right as such at their first step only: the
// bias correction counts from there, not from the job's begin.
TEST_P(CarriedStateTest, IsThatOfAFirstBlockIfItIsLost) {
  Experiment e = Block();
  e.optimiser.type = GetParam();
  e.block.reset_local_state = false;
  e.job.epochs = 300;
  constexpr int64_t kRound =
      600;  // the moments of a state that was not lost need no correction here
  Worker loses(e);
  loses.trainer->Adopt({1, {}, kRound});
  const TrainedBlock block = loses.Train(kRound, 1, /*save=*/true);
  e.block.reset_local_state = true;  // each block is a first one
  EXPECT_TRUE(SameBytes(Worker(e).Train(kRound, 1), block));
  e.block.reset_local_state = false;
  // The next owner counts from the job's begin. To it, the moments look the same. Its steps are not
  // those of the worker that keeps the state, to which a new gradient is one of few, but they are
  // not several times as long either.
  Worker next(e);
  next.trainer->Adopt({1, block.carried, kRound + 1});
  const auto length = [](const std::vector<float>& step) {
    return std::sqrt(std::inner_product(step.begin(), step.end(), step.begin(), 0.0));
  };
  const double here = length(loses.Decode(loses.Train(kRound + 1, 1), kRound + 1));
  const double there = length(next.Decode(next.Train(kRound + 1, 1), kRound + 1));
  EXPECT_NEAR(there / here, 1, .5);
}

// 90 samples, two partitions: a slice has 45 at most.
TEST_F(TrainerTest, AMinibatchOfMoreThanTheDataGiveIsOneOfWhatTheyGive) {
  Experiment fits = Augmented(Block());
  fits.sync.minibatch = 45;
  fits.sync.block = 1;
  fits.evaluation.minibatch = 23;  // as many as there are
  Experiment more = fits;
  more.sync.minibatch = 1'000'000;
  more.evaluation.minibatch = 1'000'000;
  more.data.prefetch = 1024;
  Worker a(fits), b(more);
  for (int64_t round = 0; round < 3; ++round) {
    EXPECT_TRUE(SameBytes(a.Train(round, 1), b.Train(round, 1))) << round;
  }
  EXPECT_EQ(a.trainer->EvaluateAll(a.InitialWeights())->sums[0],
            b.trainer->EvaluateAll(a.InitialWeights())->sums[0]);
}

TEST_F(TrainerTest, APartitionWithoutSamplesContributesNothing) {
  Experiment e = Block();
  e.data.train_limit = 1;
  Worker worker(e);
  const TrainedBlock block = worker.Train(0, 1);
  EXPECT_EQ(block.metrics.samples, 0);
  ASSERT_EQ(block.contributions.size(), worker.map().chunks().size());
  for (const Payload& payload : block.contributions) EXPECT_TRUE(payload.empty());
  EXPECT_EQ(worker.Train(0, 0).metrics.samples, 1);
}

TEST_F(TrainerTest, ANumberThatIsNotFiniteNamesRoundPartitionAndTensor) {
  for (const Experiment& e : {Block(), Gradient()}) {
    Worker worker(e);
    worker.on_coded = [&worker](const std::vector<CodedChunk>& chunks) {
      for (const CodedChunk& coded : chunks) {
        const auto n = static_cast<size_t>(worker.map().chunks()[coded.chunk].range.size());
        EXPECT_TRUE(CodecOf(CodecId::kFp32).Check(coded.payload.bytes, n).ok());
      }
    };
    std::vector<float> weights = worker.InitialWeights();
    const Range range = worker.layout().tensor(static_cast<int>(worker.layout().tensors().size()) -
                                               1);  // fc2's last
    weights[range.begin] = std::numeric_limits<float>::infinity();
    worker.InstallAll(Chunks(worker, weights));
    const Result<TrainedBlock> block = worker.TryTrain(1, 1);
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.status().code(), StatusCode::kOutOfRange);
    EXPECT_THAT(
        block.status().message(),
        testing::AllOf(HasSubstr("round 1"), HasSubstr("partition 1"), HasSubstr("tensor")));
  }
}

// fp16 saturates: what it pushes of a run that diverges is finite for ever.
TEST_F(TrainerTest, ARunThatDivergesIsNoticedWhateverTheCodec) {
  for (const Codec* codec : AllCodecs()) {
    if (codec->traits().has_threshold) continue;  // it bounds each step, so no run diverges
    for (const bool feedback : {true, false}) {
      if (!feedback && codec->traits().needs_feedback) continue;
      for (Experiment e : {Block(), Gradient()}) {
        e.network.file = folder_ + "/diverging.pbtxt";
        e.sync.push_codec = codec->id();
        e.sync.error_feedback = feedback;
        e.schedule.learning_rate = 1000;
        e.job.epochs = 20;
        Worker worker(e);
        std::vector<float> weights = worker.InitialWeights();
        Status status;
        int64_t round = 0;
        for (; status.ok() && round < worker.shape.plan.rounds(); ++round) {
          const Result<TrainedBlock> block = worker.TryTrain(round, 0);
          status = block.status();
          if (!status.ok()) break;
          const float rate = e.sync.mode == SyncMode::kGradient ? 1000.0f : 1.0f;
          const std::vector<float> step = worker.Decode(*block, round);
          for (size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * step[i];
          worker.InstallAll(Chunks(worker, weights));
        }
        EXPECT_LT(round, 10) << codec->name();
        EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << codec->name();
        EXPECT_THAT(
            status.message(),
            testing::AllOf(HasSubstr("round " + std::to_string(round)), HasSubstr("partition 0"),
                           HasSubstr("tensor fc"), HasSubstr("schedule.learning_rate")));
      }
    }
  }
}

TEST_F(TrainerTest, PartitionsEvaluateTheWholeSetBetweenThem) {
  for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
    Worker worker(Block());
    worker.InstallAll(worker.trainer->MakeInitialWeights().value().chunks, vector);
    MetricSums sum;
    for (int p = 0; p < 2; ++p) {
      const MetricSums part = worker.trainer->Evaluate({p, 0, vector}).value().metrics;
      sum.Add(part);
    }
    const TrainedBlock before = worker.Train(0, 0);
    const MetricSums all = worker.trainer->EvaluateAll(worker.InitialWeights()).value();
    EXPECT_EQ(sum.samples, 23);
    EXPECT_EQ(all.samples, 23);
    EXPECT_EQ(test::Correct(sum), test::Correct(all));
    EXPECT_NEAR(test::LossSum(sum), test::LossSum(all), 1e-3);
    EXPECT_TRUE(SameBytes(worker.Train(0, 0), before));  // evaluating leaves no trace
  }
}

TEST_F(TrainerTest, CropsAndFlipsEachChangeWhatIsLearnt) {
  Experiment e = Gradient();
  e.data.crop_pad = 3;
  Worker cropped(e);
  e.data.crop_pad = 0;
  e.data.flip = true;
  Worker flipped(e);
  Worker whole(Gradient());
  EXPECT_FALSE(SameBytes(cropped.Train(0, 0), whole.Train(0, 0)));
  EXPECT_FALSE(SameBytes(flipped.Train(0, 0), whole.Train(0, 0)));
}

TEST_F(TrainerTest, WholeImagesAreEvaluatedWithoutTheirMean) {
  const auto loss = [](const Experiment& e) {
    Worker worker(e);
    return worker.trainer->EvaluateAll(worker.InitialWeights()).value().sums[0];
  };
  const double plain = loss(Gradient());
  Experiment cut = Gradient();
  cut.data.crop_pad = 3;
  cut.data.flip = true;
  EXPECT_EQ(loss(cut), plain);
  Experiment mean = Gradient();
  mean.data.subtract_mean = true;
  const double without_mean = loss(mean);
  EXPECT_NE(without_mean, plain);
  EXPECT_EQ(loss(Augmented(Gradient())), without_mean);
}

TEST_F(TrainerTest, WhatDoesNotFitTogetherIsRefusedByName) {
  NoTime clock;
  const auto refusal = [&](auto change) {
    Experiment e = Block();
    change(&e);
    const auto made = Trainer::Make(e, &clock);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.status().message();
  };
  EXPECT_THAT(refusal([](Experiment* e) { e->network.file = "nowhere.pbtxt"; }),
              HasSubstr("nowhere.pbtxt"));
  EXPECT_THAT(refusal([](Experiment* e) { e->data.directory = "/nowhere"; }),
              HasSubstr("/nowhere"));
  EXPECT_THAT(refusal([](Experiment* e) { e->data.classes = 11; }), HasSubstr("11"));
  EXPECT_THAT(refusal([](Experiment* e) { e->data.crop_pad = 28; }),
              HasSubstr("data.crop_pad = 28"));
  PosixFileSystem files;
  std::string other = kTinyNetwork;
  other.replace(other.find("28 width"), 8, "24 width");
  ASSERT_TRUE(WriteFileAtomically(files, folder_ + "/other.pbtxt", other).ok());
  EXPECT_THAT(refusal([&](Experiment* e) { e->network.file = folder_ + "/other.pbtxt"; }),
              testing::AllOf(HasSubstr("24x28"), HasSubstr("28x28")));
}

}  // namespace

namespace {

TEST_F(TrainerTest, ItsPlaceInTheJobSaysRateAndStreams) {
  const Experiment e = Block();
  const OpenedJob job = OpenJob(e).value();
  TrainAction train;
  train.partition = 1;
  train.round.round = 4;
  train.round.step = 2;
  train.round.samples = {42, 84};
  train.round.first_sample = 42;
  const StepParameters step = ParametersOf(e, job, train.round, train.partition,
                                           {.minibatch = 1, .samples = 7}, /*steps_before=*/0);
  EXPECT_EQ(step.streams.seed, e.job.seed);
  EXPECT_EQ(step.streams.partition, 1u);
  EXPECT_EQ(step.streams.round, 4u);
  EXPECT_EQ(step.streams.step, 1u);
  // Both partitions have trained a minibatch of 7 before this one.
  EXPECT_EQ(step.decayed.learning_rate, job.schedule->RateAt(42 + 2 * 7, 7));
  EXPECT_EQ(step.undecayed.learning_rate, step.decayed.learning_rate);
  EXPECT_EQ(step.decayed.weight_decay, 0.01f);
  EXPECT_EQ(step.undecayed.weight_decay, 0.0f);
  EXPECT_EQ(step.decayed.step, 2);
  // With the state of the blocks before, of 3 minibatches each.
  EXPECT_EQ(ParametersOf(e, job, train.round, train.partition, {.minibatch = 1, .samples = 7},
                         /*steps_before=*/3)
                .decayed.step,
            2 + 3);
  // A slice that is longer than the others' does not run ahead of the round.
  EXPECT_EQ(ParametersOf(e, job, train.round, train.partition, {.minibatch = 9, .samples = 7}, 0)
                .decayed.learning_rate,
            job.schedule->RateAt(84, 7));
}

TEST_F(TrainerTest, AChunkIsFinalOnceAndNotBeforeItsFirstTensor) {
  Experiment e = Gradient();
  const OpenedJob job = OpenJob(e).value();
  const ParameterLayout& layout = job.spec.layout;
  const std::vector<Range> stages = job.net->gradient_stages();
  const ShardMap map(layout, /*servers=*/1, /*chunk_bytes=*/512);
  const auto chunks = ReadyChunks(e, stages, layout, map);
  ASSERT_EQ(chunks.size(), stages.size());
  EXPECT_TRUE(chunks.back().empty());
  std::set<int> seen;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const int index : chunks[stage]) {
      EXPECT_TRUE(seen.insert(index).second);
      const int first = layout.TensorAt(map.chunks()[index].range.begin);
      EXPECT_GE(first, stages[stage].begin);
      EXPECT_LT(first, stages[stage].end);
    }
  }
  EXPECT_FALSE(seen.empty());
  EXPECT_FALSE(seen.contains(0));
  e.optimiser.clip_norm = 1;
  EXPECT_TRUE(ReadyChunks(e, stages, layout, map).empty());
  e.optimiser.clip_norm = 0;
  e.network.precision = Precision::kFp16;
  EXPECT_TRUE(ReadyChunks(e, stages, layout, map).empty());
}

}  // namespace

}  // namespace kumo
