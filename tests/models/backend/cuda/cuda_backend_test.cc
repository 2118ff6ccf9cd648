// What the CUDA backend owes to the CPU's: the same bits where codecs, optimisers and masks are
// concerned. Layers are held against the plain reference in layer_test.cc, on this device too, and
// whole networks against the CPU in training_test.cc.
#include "models/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "tests/models/gpu_under_test.h"
#include "tests/models/numbers.h"
#include "tests/models/single_arrays.h"

namespace kumo {
namespace {

using testing::HasSubstr;

// Numbers of very different sizes, with zeros of both signs and subnormal ones.
std::vector<float> SomeNumbers(int64_t n, uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) {
    x = rng.NextNormal() * std::ldexp(1.0f, static_cast<int>(rng.NextBelow(12)) - 8);
    const uint64_t special = rng.NextBelow(64);
    if (special == 0) x = 0.0f;
    if (special == 1) x = -0.0f;
    if (special == 2) x = std::numeric_limits<float>::denorm_min() * 3;
  }
  return numbers;
}

std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// A vector in a device's memory.
struct Vector {
  Vector(Backend& device, const std::vector<float>& from)
      : backend(device), array(device, static_cast<int64_t>(from.size()), "a vector") {
    backend.Write(from.data(), from.size() * sizeof(float), array.data());
  }
  std::vector<float> Read() const {
    std::vector<float> to(static_cast<size_t>(array.size()));
    const Status read = backend.Read(array.data(), to.size() * sizeof(float), to.data());
    EXPECT_TRUE(read.ok()) << read.message();
    return to;
  }
  float* data() { return array.data(); }

  Backend& backend;
  DeviceArray<float> array;
};

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> made = MakeCudaBackend({});
    if (!made.ok() && !GpuIsSimulated()) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status().message();
    cuda_ = std::move(made).value();
    cpu_ = MakeCpuBackend(1);
  }

  std::unique_ptr<Backend> cpu_;
  std::unique_ptr<Backend> cuda_;
};

TEST(CudaDevice, ADeviceThatIsNotThereIsRefusedByName) {
  const Result<std::unique_ptr<Backend>> made = MakeCudaBackend({.device = 99});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(made.status().message(), HasSubstr("network.device=cuda:99"));
}

TEST_F(CudaBackendTest, WhatCudnnDoesNotTakeAtOnceIsRefusedBeforeTheJobStarts) {
  PoolingSpec pooling;
  pooling.input = {1, 2, 2};
  pooling.kernel_height = pooling.kernel_width = pooling.stride = 2;
  EXPECT_TRUE(cuda_->MakeOp(pooling, 65535).ok());
  const Status many = cuda_->MakeOp(pooling, 65536).status();
  EXPECT_EQ(many.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(many.message(), HasSubstr("65535 samples"));
  EXPECT_THAT(many.message(), HasSubstr("sync.minibatch_parts"));

  ConvolutionSpec convolution;
  convolution.input = {64, 224, 224};
  convolution.outputs = 64;
  convolution.kernel_height = convolution.kernel_width = 3;
  convolution.pad = 1;
  EXPECT_TRUE(cuda_->MakeOp(convolution, 668).ok());
  EXPECT_EQ(cuda_->MakeOp(convolution, 669).status().code(), StatusCode::kInvalidArgument);
}

// More writes, and more bytes, than are on their way at once.
TEST_F(CudaBackendTest, WhatIsWrittenMayChangeAsSoonAsTheCallReturns) {
  constexpr int64_t kSize = 600'000;
  std::vector<float> host(kSize);
  std::vector<std::unique_ptr<Vector>> vectors;
  for (int v = 0; v < 20; ++v) {
    host.assign(kSize, static_cast<float>(v));
    vectors.push_back(std::make_unique<Vector>(*cuda_, host));
  }
  host.assign(kSize, -1.0f);
  for (int v = 0; v < 20; ++v) {
    EXPECT_EQ(vectors[v]->Read(), std::vector<float>(kSize, static_cast<float>(v))) << v;
  }
}

// Each longer than the one before, so that the memory for codes grows in between.
TEST_F(CudaBackendTest, ManyContributionsAreCodedBeforeOneIsWaitedFor) {
  const Codec* const codec = AllCodecs().front();
  constexpr int kMany = 8;
  std::vector<std::unique_ptr<Vector>> vectors;
  std::vector<std::shared_ptr<std::byte>> codes;
  std::vector<GradientCodec::Encoding> encodings(kMany);
  for (int v = 0; v < kMany; ++v) {
    const int64_t n = 1000 * (v + 1);
    vectors.push_back(std::make_unique<Vector>(*cuda_, SomeNumbers(n, static_cast<uint64_t>(v))));
    const size_t bytes = codec->EncodedBytes(static_cast<size_t>(n));
    codes.push_back(cuda_->MakeCode(bytes));
    GradientCodec::Encoding& encoding = encodings[v];
    encoding.codec = codec;
    encoding.x = vectors[v]->data();
    encoding.n = n;
    encoding.code = {codes[v].get(), bytes};
    encoding.first_bad = -2;
    cuda_->Encode({&encoding, 1});
  }
  ASSERT_TRUE(cuda_->Wait().ok());
  for (int v = 0; v < kMany; ++v) {
    EXPECT_EQ(encodings[v].first_bad, -1);
    const int64_t n = 1000 * (v + 1);
    const std::vector<float> numbers = SomeNumbers(n, static_cast<uint64_t>(v));
    std::vector<float> decoded(numbers.size());
    const size_t bytes = codec->EncodedBytes(numbers.size());
    codec->Decode({codes[v].get(), bytes}, numbers.size(), 0, decoded);
    EXPECT_EQ(Bits(decoded), Bits(numbers)) << v;
  }
}

// The upper half of the position changes within the numbers.
constexpr EncodeContext kContext = {.key = 11, .first = (uint64_t{1} << 32) - 600};

struct Coded {
  std::vector<std::byte> code;
  int64_t first_bad = -2;
  std::vector<float> residual;
  std::vector<float> decoded;
};

Coded EncodeOn(Backend& backend, const Codec& codec, const std::vector<float>& x,
               const std::vector<float>& minus, const std::vector<float>& residual,
               const EncodeContext& context = kContext) {
  const auto n = static_cast<int64_t>(x.size());
  Vector device_x(backend, x);
  Vector device_minus(backend, minus);
  Vector device_residual(backend, residual);
  GradientCodec::Encoding encoding;
  encoding.codec = &codec;
  encoding.x = device_x.data();
  encoding.minus = minus.empty() ? nullptr : device_minus.data();
  encoding.residual = residual.empty() ? nullptr : device_residual.data();
  encoding.n = n;
  encoding.context = context;
  Coded coded;
  const size_t bytes = codec.EncodedBytes(x.size());
  const std::shared_ptr<std::byte> code = backend.MakeCode(bytes);
  encoding.code = {code.get(), bytes};
  backend.Encode({&encoding, 1});
  EXPECT_TRUE(backend.Wait().ok());
  coded.first_bad = encoding.first_bad;
  coded.code.assign(code.get(), code.get() + bytes);
  coded.residual = device_residual.Read();
  Vector decoded(backend, std::vector<float>(x.size()));
  backend.Decode(codec, coded.code, n, decoded.data());
  coded.decoded = decoded.Read();
  return coded;
}

// All, and those with settings once more with others.
std::vector<const Codec*> CodecsToTry() {
  std::vector<const Codec*> codecs(AllCodecs().begin(), AllCodecs().end());
  codecs.push_back(&CodecOf(CodecId::kTwoBit, {.threshold = 0.1f}));
  for (const auto& [kept, values] : {std::pair(1, CodecId::kFp16),
                                     {410, CodecId::kOneBit},
                                     {700, CodecId::kTwoBitCntk},
                                     {2048, CodecId::kInt4Stochastic}}) {
    codecs.push_back(&CodecOf(CodecId::kTopk, {.kept = kept, .values = values}));
  }
  return codecs;
}

TEST_F(CudaBackendTest, CodesAndResidualsAreTheCpusBitForBit) {
  for (const Codec* codec : CodecsToTry()) {
    // Blocks of threads that wait for each other take a while to simulate.
    const int64_t most = codec->group() > Codec::kBucket ? 30'001 : 300'001;
    for (const int64_t n :
         {int64_t{1}, int64_t{15}, int64_t{511}, int64_t{512}, int64_t{513}, int64_t{5000}, most}) {
      for (const bool difference : {false, true}) {
        for (const bool feedback : {false, true}) {
          SCOPED_TRACE(std::string(codec->name()) + " " + std::to_string(n));
          std::vector<float> x = SomeNumbers(n, 1);
          if (n > 600) {
            // A bucket whose sum is beyond float32, and one of nothing.
            for (int i = 0; i < 512; ++i) x[i] = i % 3 == 0 ? -3e38f : 3e38f;
          }
          const std::vector<float> minus = difference ? SomeNumbers(n, 2) : std::vector<float>();
          const std::vector<float> residual =
              feedback && !codec->lossless() ? SomeNumbers(n, 3) : std::vector<float>();
          const Coded expected = EncodeOn(*cpu_, *codec, x, minus, residual);
          const Coded found = EncodeOn(*cuda_, *codec, x, minus, residual);
          ASSERT_EQ(expected.first_bad, -1);
          ASSERT_EQ(found.first_bad, -1);
          ASSERT_EQ(found.code, expected.code);
          ASSERT_EQ(Bits(found.residual), Bits(expected.residual));
          ASSERT_EQ(Bits(found.decoded), Bits(expected.decoded));
        }
      }
    }
  }
}

// Of several codecs, some without a number, some with a neighbour in host memory and some with
// none; one has a number that is not finite, which is found in that one.
TEST_F(CudaBackendTest, AContributionIsCodedAsItsChunksAre) {
  constexpr size_t kRoom = size_t{1} << 20;
  const std::vector<int64_t> sizes = {512, 1024, 0, 700, 3, 512, 0, 9000, 1, 1536, 511};
  constexpr size_t kBroken = 7;
  std::vector<std::unique_ptr<Vector>> vectors;
  std::vector<std::unique_ptr<Vector>> residuals;
  std::vector<GradientCodec::Encoding> encodings;
  std::vector<Coded> expected;
  const std::shared_ptr<std::byte> memory = cuda_->MakeCode(kRoom);
  size_t end = 0;
  const std::span<const Codec* const> codecs = AllCodecs();
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<float> x = SomeNumbers(sizes[i], i);
    if (i == kBroken) x[5000] = std::numeric_limits<float>::infinity();
    const Codec* const codec = codecs[i / 2 % codecs.size()];
    const std::vector<float> residual =
        !codec->lossless() ? SomeNumbers(sizes[i], 100 + i) : std::vector<float>();
    expected.push_back(EncodeOn(*cpu_, *codec, x, {}, residual));
    vectors.push_back(std::make_unique<Vector>(*cuda_, x));
    residuals.push_back(std::make_unique<Vector>(*cuda_, residual));
    GradientCodec::Encoding& encoding = encodings.emplace_back();
    encoding.codec = codec;
    encoding.x = vectors.back()->data();
    encoding.residual = residual.empty() ? nullptr : residuals.back()->data();
    encoding.n = sizes[i];
    encoding.context = kContext;
    const size_t bytes = codec->EncodedBytes(x.size());
    encoding.code = {memory.get() + end, bytes};
    end += bytes + (i % 3 == 0 ? 64 : 0);
  }
  cuda_->Encode(encodings);
  ASSERT_TRUE(cuda_->Wait().ok());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(encodings[i].first_bad, i == kBroken ? 5000 : -1) << i;
    if (i == kBroken) continue;
    EXPECT_THAT(encodings[i].code, testing::ElementsAreArray(expected[i].code)) << i;
    EXPECT_EQ(Bits(residuals[i]->Read()), Bits(expected[i].residual)) << i;
  }
}

// Tensors of all sizes, one of them in all chunks; beside a chunk of another codec. The CPU's bits.
TEST_F(CudaBackendTest, LevelsOfTensorsAreTheCpusBitForBit) {
  const Codec& codec = CodecOf(CodecId::kTopk2bit, {.residual_factor = 0.7f});
  const std::vector<size_t> lengths = {8192, 4096, 9000};
  std::vector<std::unique_ptr<const Codec>> codecs;
  codecs.push_back(codec.ForTensors({{4, 0}, {5, 100}, {6, 101}, {7, 7000}}, lengths[0]));
  codecs.push_back(codec.ForTensors({{7, 0}}, lengths[1]));
  codecs.push_back(codec.ForTensors({{7, 0}, {8, 500}, {2, 8999}}, lengths[2]));
  for (int again = 0; again < 2; ++again) {
    std::vector<std::vector<std::byte>> codes[2];
    std::vector<uint32_t> residuals[2];
    for (Backend* const backend : {cpu_.get(), cuda_.get()}) {
      const int side = backend == cpu_.get() ? 0 : 1;
      std::vector<std::unique_ptr<Vector>> vectors;
      std::vector<GradientCodec::Encoding> encodings;
      const std::shared_ptr<std::byte> memory = backend->MakeCode(1 << 16);
      std::byte* to = memory.get();
      for (size_t i = 0; i < 4; ++i) {
        const Codec& of_chunk = i < 3 ? *codecs[i] : CodecOf(CodecId::kInt8);
        const auto n = static_cast<int64_t>(i < 3 ? lengths[i] : 700);
        for (uint64_t array = 0; array < 3; ++array) {
          vectors.push_back(std::make_unique<Vector>(*backend, SomeNumbers(n, 10 * i + array)));
        }
        GradientCodec::Encoding& encoding = encodings.emplace_back();
        encoding.codec = &of_chunk;
        encoding.x = vectors[3 * i]->data();
        encoding.minus = again == 0 ? vectors[3 * i + 1]->data() : nullptr;
        encoding.residual = vectors[3 * i + 2]->data();
        encoding.n = n;
        encoding.code = {to, of_chunk.EncodedBytes(static_cast<size_t>(n))};
        to += encoding.code.size();
      }
      backend->Encode(encodings);
      ASSERT_TRUE(backend->Wait().ok());
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(encodings[i].first_bad, -1);
        codes[side].emplace_back(encodings[i].code.begin(), encodings[i].code.end());
        const std::vector<uint32_t> bits = Bits(vectors[3 * i + 2]->Read());
        residuals[side].insert(residuals[side].end(), bits.begin(), bits.end());
      }
    }
    EXPECT_EQ(codes[0], codes[1]);
    EXPECT_EQ(residuals[0], residuals[1]);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(codecs[i]->Check(codes[0][i], lengths[i]).ok());
      std::vector<float> expected(lengths[i]);
      codecs[i]->Decode(codes[0][i], lengths[i], 0, expected);
      for (Backend* const backend : {cpu_.get(), cuda_.get()}) {
        Vector decoded(*backend, std::vector<float>(lengths[i]));
        backend->Decode(*codecs[i], codes[0][i], static_cast<int64_t>(lengths[i]), decoded.data());
        EXPECT_EQ(Bits(decoded.Read()), Bits(expected));
      }
    }
  }
}

// Vectors are made one after the other by a step that is first run, then recorded, then repeated,
// and coded as they come; what follows the step uses them again.
TEST_F(CudaBackendTest, WhatAStepHasMadeIsCodedWhileItGoesOn) {
  constexpr int kVectors = 3;
  constexpr int64_t kSize = 70'000;
  const Codec* const codec = &CodecOf(CodecId::kOneBit);
  const size_t bytes = codec->EncodedBytes(kSize);
  for (Backend* const backend : {cpu_.get(), cuda_.get()}) {
    SCOPED_TRACE(backend->name());
    std::vector<std::unique_ptr<Vector>> from, made, residuals;
    std::vector<std::vector<float>> carried(kVectors, std::vector<float>(kSize));
    for (int v = 0; v < kVectors; ++v) {
      for (auto* vectors : {&from, &made, &residuals}) {
        vectors->push_back(std::make_unique<Vector>(*backend, std::vector<float>(kSize)));
      }
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<std::vector<float>> numbers;
      std::vector<GradientCodec::Encoding> encodings(kVectors);
      std::vector<int> told;
      std::vector<std::shared_ptr<std::byte>> codes;
      for (int v = 0; v < kVectors; ++v) {
        numbers.push_back(SomeNumbers(kSize, static_cast<uint64_t>(10 * step + v)));
        backend->Write(numbers[v].data(), kSize * sizeof(float), from[v]->data());
        codes.push_back(backend->MakeCode(bytes));
        GradientCodec::Encoding& encoding = encodings[v];
        encoding.codec = codec;
        encoding.x = made[v]->data();
        encoding.residual = residuals[v]->data();
        encoding.n = kSize;
        encoding.code = {codes[v].get(), bytes};
        encoding.first_bad = -2;
      }
      // Not of mark 1: nobody has to ask for each; and asked in another order than made.
      for (const int v : {2, 0}) {
        backend->EncodeAt(v, {&encodings[v], 1}, [&told, &encodings, v] {
          EXPECT_EQ(encodings[v].first_bad, -1);
          told.push_back(v);
        });
      }
      backend->Repeat({1, false, made[0]->data()}, [&] {
        for (int v = 0; v < kVectors; ++v) {
          backend->Copy(from[v]->data(), kSize * sizeof(float), made[v]->data());
          backend->Mark(v);
        }
      });
      backend->Encode({&encodings[1], 1});
      for (int v = 0; v < kVectors; ++v) {
        backend->Zero(made[v]->data(), kSize * sizeof(float));
      }
      // Its end waits for what is queued in order, and for nothing beside it.
      (void)Vector(*backend, {1.0f});
      ASSERT_TRUE(backend->Wait().ok());
      EXPECT_THAT(told, testing::UnorderedElementsAre(0, 2)) << "step " << step;
      for (int v = 0; v < kVectors; ++v) {
        const Coded expected = EncodeOn(*cpu_, *codec, numbers[v], {}, carried[v]);
        carried[v] = expected.residual;
        EXPECT_EQ(encodings[v].first_bad, -1);
        EXPECT_TRUE(std::ranges::equal(encodings[v].code, expected.code)) << "vector " << v;
        EXPECT_EQ(Bits(residuals[v]->Read()), Bits(expected.residual)) << "vector " << v;
      }
    }
  }
}

TEST_F(CudaBackendTest, TheFirstNumberThatIsNotFiniteIsFound) {
  for (const Codec* codec : AllCodecs()) {
    std::vector<float> x = SomeNumbers(4000, 4);
    x[1234] = std::numeric_limits<float>::infinity();
    x[3210] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(EncodeOn(*cuda_, *codec, x, {}, {}).first_bad, 1234) << codec->name();
  }
}

TEST_F(CudaBackendTest, TheFirstNumberAboveALimitIsFound) {
  for (const Codec* codec : AllCodecs()) {
    std::vector<float> x = SomeNumbers(4000, 4);
    x[77] = 65504.0f;
    x[1234] = -65536.0f;
    x[3210] = 1e6f;
    EXPECT_EQ(EncodeOn(*cuda_, *codec, x, {}, {}).first_bad, -1) << codec->name();
    EXPECT_EQ(EncodeOn(*cuda_, *codec, x, {}, {}, {.most = 65504.0f}).first_bad, 1234)
        << codec->name();
    EXPECT_EQ(EncodeOn(*cuda_, *codec, x, {}, x, {.most = 131072.0f}).first_bad, 3210)
        << codec->name();
  }
}

TEST_F(CudaBackendTest, OptimisersWalkTheCpusWayBitForBit) {
  constexpr int64_t kSize = 10'007;
  for (const auto& choice : ChoicesOf(OptimiserType())) {
    OptimiserSettings settings;
    settings.type = choice.value;
    const std::unique_ptr<Optimiser> optimiser = MakeOptimiser(settings);
    const auto walk = [&](Backend& backend) {
      Vector weights(backend, SomeNumbers(kSize, 5));
      Vector first(backend, std::vector<float>(kSize));
      Vector second(backend, std::vector<float>(kSize));
      float* const slots[] = {first.data(), second.data()};
      for (int s = 1; s <= 5; ++s) {
        Vector gradient(backend, SomeNumbers(kSize, static_cast<uint64_t>(10 + s)));
        StepParameters step;
        step.optimiser = optimiser.get();
        step.decayed = {0.01f / static_cast<float>(s), 0.0005f, s};
        step.undecayed = {0.01f / static_cast<float>(s), 0.0f, s};
        backend.SetStep(step);
        const int64_t half = kSize / 2;
        float* const upper[] = {slots[0] + half, slots[1] + half};
        backend.OptimiserStep(Segment::kDecayed, {}, gradient.data(), half, weights.data(), slots);
        backend.OptimiserStep(Segment::kUndecayed, {0.3f, 1.0f}, gradient.data() + half,
                              kSize - half, weights.data() + half, upper);
        EXPECT_TRUE(backend.Wait().ok());
      }
      return Bits(weights.Read());
    };
    EXPECT_EQ(walk(*cuda_), walk(*cpu_)) << choice.word;
  }
}

TEST_F(CudaBackendTest, AMaskIsTheCpus) {
  constexpr int kBatch = 13;
  const DropoutSpec spec{{7, 5, 3}, 0.4f, 6};
  const std::vector<float> x(kBatch * 105, 1.0f);
  const auto drop = [&](Backend& backend) {
    StepParameters step;
    step.streams = {9, 3, uint64_t{1} << 40, 17};
    backend.SetStep(step);
    const int64_t size = backend.ActivationBytes(spec.shape, kBatch);
    DeviceArray<std::byte> input(backend, size, "x");
    DeviceArray<std::byte> output(backend, size, "y");
    LoadActivations(backend, spec.shape, kBatch, x.data(), input.data());
    const auto op = backend.MakeOp(spec, kBatch).value();
    ForwardOf(op.get(), {kBatch, true}, input.data(), output.data());
    std::vector<float> y(x.size());
    backend.StoreOutputs(spec.shape, kBatch, output.data(), y.data());
    return Bits(y);
  };
  EXPECT_EQ(drop(*cuda_), drop(*cpu_));
}

TEST_F(CudaBackendTest, MoreMemoryThanThereIsNamesWhoAskedForIt) {
  const DeviceArray<float> much(*cuda_, int64_t{1} << 44, "the residuals of 4096 partitions");
  const Status status = cuda_->Wait();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("the residuals of 4096 partitions need"));
  EXPECT_THAT(status.message(), HasSubstr("free"));
}

}  // namespace
}  // namespace kumo
