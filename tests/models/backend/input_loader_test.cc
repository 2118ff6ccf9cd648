// What samples' fields become on a device: the formula's numbers, bit for bit, on each that the
// executable has.
#include "models/backend/input_loader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/data/pixel_reference.h"
#include "tests/models/gpu_under_test.h"
#include "tests/models/narrow_precisions.h"

namespace kumo {
namespace {

using testing::HasSubstr;

std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// A minibatch of everything that a sample can have, in one order or the other.
struct Case {
  Case(Rng& rng, const Shape& of, int samples, bool mean, bool scales = false)
      : shape(of), batch(samples) {
    pixels = test::RandomBytes(rng, batch * shape.size());
    formula = test::RandomFormula(rng, shape.size(), mean);
    for (int64_t c = 0; scales && c < shape.channels(); ++c) {
      formula.scales.push_back(rng.NextUniform(0.001f, 2.0f));
    }
    for (int64_t i = 0; i < batch * shape.size(); ++i) {
      numbers.push_back(rng.NextUniform(-2.0f, 2.0f));
    }
    for (int64_t i = 0; i < batch * 3; ++i) {
      words.push_back(static_cast<int32_t>(rng.NextBelow(uint64_t{1} << 31)));
    }
  }

  std::vector<InputField> Fields() const {
    return {{NumberType::kUint8, shape, formula},
            {NumberType::kInt32, {3}, {}},
            {NumberType::kFloat32, shape, {}}};
  }
  std::vector<float> Inputs() const {
    std::vector<float> inputs;
    for (int k = 0; k < batch; ++k) {
      const auto image = std::span(pixels).subspan(k * shape.size(), shape.size());
      const std::vector<float> one = test::InputsOf(image, formula);
      inputs.insert(inputs.end(), one.begin(), one.end());
    }
    return inputs;
  }

  Shape shape;
  int batch;
  PixelFormula formula;
  std::vector<uint8_t> pixels;
  std::vector<float> numbers;
  std::vector<int32_t> words;
};

// A minibatch in a device's memory.
struct Loaded {
  Loaded(Backend& device, const Shape& of, int samples)
      : backend(device),
        shape(of),
        batch(samples),
        inputs(device, device.ActivationBytes(of, batch), "inputs"),
        words(device, int64_t{batch} * 3, "words"),
        numbers(device, device.ActivationBytes(of, batch), "numbers") {}

  void Load(InputLoader* loader, const Case& c) {
    const std::span<const std::byte> fields[] = {std::as_bytes(std::span(c.pixels)),
                                                 std::as_bytes(std::span(c.words)),
                                                 std::as_bytes(std::span(c.numbers))};
    void* const arrays[] = {inputs.data(), words.data(), numbers.data()};
    loader->Load({c.batch, fields}, arrays);
  }
  std::vector<float> Read(const DeviceArray<std::byte>& from) const {
    std::vector<float> read(static_cast<size_t>(shape.size() * batch));
    backend.StoreOutputs(shape, batch, from.data(), read.data());
    return read;
  }
  std::vector<int32_t> Words() const {
    std::vector<int32_t> read(static_cast<size_t>(words.size()));
    const Status status = backend.Read(words.data(), read.size() * sizeof(int32_t), read.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return read;
  }

  Backend& backend;
  Shape shape;
  int batch;
  DeviceArray<std::byte> inputs;
  DeviceArray<int32_t> words;
  DeviceArray<std::byte> numbers;
};

class InputLoaderTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cpu") {
      backend_ = MakeCpuBackend(1);
      return;
    }
    Result<std::unique_ptr<Backend>> made = MakeCudaBackend({});
    if (!made.ok() && !GpuIsSimulated()) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status().message();
    backend_ = std::move(made).value();
  }

  std::unique_ptr<Backend> backend_;
};
INSTANTIATE_TEST_SUITE_P(Devices, InputLoaderTest,
                         testing::Values(std::string("cpu"), std::string("cuda")),
                         [](const auto& tested) { return tested.param; });

const Shape kShapes[] = {{1, 1, 1}, {1, 28, 28}, {3, 32, 32}, {2, 3, 17}, {5, 11, 2}};

TEST_P(InputLoaderTest, BytesBecomeTheFormulasNumbersAndTheRestIsAsItIs) {
  Rng rng(3, RngPurpose::kTest);
  for (const Shape& shape : kShapes) {
    for (const auto& [mean, scales] : {std::pair(false, false), std::pair(true, false),
                                       std::pair(false, true), std::pair(true, true)}) {
      for (const int batch : {1, 13, 64}) {
        SCOPED_TRACE(shape.ToString() + (mean ? ", mean" : "") + (scales ? ", scales" : ""));
        const Case c(rng, shape, batch, mean, scales);
        const auto loader = backend_->MakeInputLoader(c.Fields(), batch);
        Loaded loaded(*backend_, shape, batch);
        loaded.Load(loader.get(), c);
        ASSERT_TRUE(backend_->Wait().ok());
        ASSERT_EQ(Bits(loaded.Read(loaded.inputs)), Bits(c.Inputs()));
        ASSERT_EQ(Bits(loaded.Read(loaded.numbers)), Bits(c.numbers));
        ASSERT_EQ(loaded.Words(), c.words);
      }
    }
  }
}

// Each minibatch of another size, more of them than there are buffers.
TEST_P(InputLoaderTest, WhatIsLoadedMayChangeAsSoonAsTheCallReturns) {
  Rng rng(5, RngPurpose::kTest);
  const Shape shape = {3, 8, 9};
  const Case first(rng, shape, 1, true);
  const auto loader = backend_->MakeInputLoader(first.Fields(), 31);
  std::vector<std::unique_ptr<Loaded>> loaded;
  std::vector<Case> cases;
  for (const int batch : {4, 9, 1, 30, 30, 2, 31}) {
    Case c(rng, shape, batch, false);
    c.formula = first.formula;
    cases.push_back(c);
    loaded.push_back(std::make_unique<Loaded>(*backend_, shape, batch));
    loaded.back()->Load(loader.get(), c);
    std::ranges::fill(c.pixels, uint8_t{0});
    std::ranges::fill(c.words, -1);
    std::ranges::fill(c.numbers, 0.0f);
  }
  for (size_t i = 0; i < loaded.size(); ++i) {
    EXPECT_EQ(Bits(loaded[i]->Read(loaded[i]->inputs)), Bits(cases[i].Inputs())) << i;
    EXPECT_EQ(Bits(loaded[i]->Read(loaded[i]->numbers)), Bits(cases[i].numbers)) << i;
    EXPECT_EQ(loaded[i]->Words(), cases[i].words) << i;
  }
}

TEST_P(InputLoaderTest, SamplesThatDoNotFitTheNetAreRefused) {
  const model::Network network = ParseNetwork(R"(
    name: "small"
    input { channels: 1 height: 3 width: 2 }
    layers { name: "flat" flatten {} }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                              "small")
                                     .value();
  const std::unique_ptr<Net> net = Net::Make(network, 3, backend_.get()).value();
  const Field image = {kImageField, NumberType::kUint8, {1, 3, 2}};
  const Field label = {kLabelField, NumberType::kInt32, {}};
  const Field other = {"weight", NumberType::kFloat32, {7}};
  const auto refusal = [&](const Fields& fields) {
    const Status status = net->Connect(fields, {});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    return status.message();
  };
  EXPECT_THAT(refusal({image}), HasSubstr("\"label\", but the samples have no such field"));
  EXPECT_THAT(refusal({{kImageField, NumberType::kUint8, {1, 2, 3}}, label}),
              HasSubstr("\"image\" of 1x3x2, but in the samples it is 1x2x3"));
  EXPECT_THAT(refusal({image, {kLabelField, NumberType::kFloat32, {}}}),
              HasSubstr("takes integers as field \"label\", the samples have numbers"));

  ASSERT_TRUE(net->Connect({label, other, image}, {}).ok());
  const std::vector<uint8_t> pixels(30);
  const std::vector<int32_t> labels = {0, 3, 1, 0, 4};
  const auto load = [&](int size, size_t bytes, size_t first_label, size_t label_count) {
    const std::span<const std::byte> fields[] = {
        std::as_bytes(std::span(labels).subspan(first_label, label_count)),
        {},
        std::as_bytes(std::span(pixels).first(bytes))};
    return net->Load({size, fields}).message();
  };
  EXPECT_EQ(load(3, 18, 0, 3), "");
  EXPECT_EQ(load(2, 12, 1, 2), "");
  EXPECT_THAT(load(4, 24, 0, 4), HasSubstr("the size of a minibatch"));
  EXPECT_THAT(load(3, 17, 0, 3), HasSubstr("has 18 bytes, not 17"));
  EXPECT_THAT(load(3, 18, 0, 2), HasSubstr("\"label\" of a minibatch of 3 samples"));
  EXPECT_THAT(load(3, 18, 2, 3), HasSubstr("label 4"));
  EXPECT_TRUE(backend_->Wait().ok());
}

TEST(CudaInputLoader, InSixteenBitsInputsAreTheFormulasRoundedOnce) {
  if (!GpuIsSimulated() && !MakeCudaBackend({}).ok()) GTEST_SKIP() << "there is no GPU";
  Rng rng(4, RngPurpose::kTest);
  for (const Precision precision : NarrowPrecisions()) {
    const float unit = precision == Precision::kBf16 ? 0x1p-8f : 0x1p-11f;
    const std::unique_ptr<Backend> backend = MakeCudaBackend({.precision = precision}).value();
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Case c(rng, shape, 9, true);
      const auto loader = backend->MakeInputLoader(c.Fields(), 9);
      Loaded loaded(*backend, shape, 9);
      loaded.Load(loader.get(), c);
      const std::vector<float> found = loaded.Read(loaded.inputs);
      const std::vector<float> expected = c.Inputs();
      for (size_t i = 0; i < expected.size(); ++i) {
        // fp16's subnormal numbers lie 2^-24 apart.
        ASSERT_NEAR(found[i], expected[i], unit * std::abs(expected[i]) + 0x1p-25f) << i;
      }
    }
  }
}

}  // namespace
}  // namespace kumo
