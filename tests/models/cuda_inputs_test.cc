// Inputs that a GPU makes of bytes: the host's, bit for bit, from a data set that it keeps and from
// minibatches that are sent.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/pixel_transform.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/net.h"
#include "models/network.h"
#include "tests/data/pixel_reference.h"
#include "tests/models/gpu_under_test.h"

namespace kumo {
namespace {

using testing::HasSubstr;

std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// Images, a formula, and a minibatch of some of them.
struct Case {
  Case(Rng& rng, const Shape& of, int64_t images, int64_t batch, bool mean, bool cuts)
      : shape(of),
        pixels(test::RandomBytes(rng, images * of.size())),
        classes(test::RandomBytes(rng, images)),
        formula(test::RandomFormula(rng, of.size(), mean)) {
    for (int64_t k = 0; k < batch; ++k) {
      indices.push_back(static_cast<int64_t>(rng.NextBelow(images)));
      if (cuts) windows.push_back(test::RandomWindow(rng, 6));
      labels.push_back(classes[indices.back()]);
      const std::span<const uint8_t> image = Image(indices.back());
      sent.insert(sent.end(), image.begin(), image.end());
    }
  }

  std::span<const uint8_t> Image(int64_t index) const {
    return std::span(pixels).subspan(index * shape.size(), shape.size());
  }
  int batch() const { return static_cast<int>(indices.size()); }
  PixelBatch Bytes() const { return {batch(), sent, labels, windows}; }
  // What the host makes of it.
  std::vector<float> Inputs() const {
    std::vector<float> inputs(indices.size() * shape.size());
    PixelTransform transform({shape.channels, shape.height, shape.width}, formula);
    for (size_t k = 0; k < indices.size(); ++k) {
      transform.Apply(Image(indices[k]), windows.empty() ? nullptr : &windows[k],
                      std::span(inputs).subspan(k * shape.size(), shape.size()));
    }
    return inputs;
  }

  Shape shape;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> classes;
  PixelFormula formula;
  std::vector<int64_t> indices;
  std::vector<Window> windows;
  std::vector<int32_t> labels;
  std::vector<uint8_t> sent;  // the images of the minibatch, one after the other
};

// A minibatch in a device's memory.
struct Loaded {
  Loaded(Backend& device, const Shape& of, int batch)
      : backend(device),
        shape(of),
        inputs(device, device.ActivationBytes(of, batch), "inputs"),
        labels(device, batch, "labels") {}

  std::vector<float> Inputs() const {
    const int batch = static_cast<int>(labels.size());
    std::vector<float> read(static_cast<size_t>(shape.size() * batch));
    backend.StoreOutputs(shape, batch, inputs.data(), read.data());
    return read;
  }
  std::vector<int32_t> Labels() const {
    std::vector<int32_t> read(static_cast<size_t>(labels.size()));
    const Status status = backend.Read(labels.data(), read.size() * sizeof(int32_t), read.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return read;
  }

  Backend& backend;
  Shape shape;
  DeviceArray<std::byte> inputs;
  DeviceArray<int32_t> labels;
};

class CudaInputsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> made = MakeCudaBackend({});
    if (!made.ok() && !GpuIsSimulated()) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status().message();
    cuda_ = std::move(made).value();
  }

  // Twice: from a data set that is kept, and sent.
  static void LoadBothWays(Backend& backend, const Case& c, Loaded* kept, Loaded* sent) {
    const std::unique_ptr<InputLoader> loader = backend.MakeInputLoader(c.shape, c.formula);
    ASSERT_NE(loader, nullptr);
    const std::unique_ptr<DeviceSamples> samples = loader->KeepSamples(c.pixels, c.classes, 0);
    ASSERT_NE(samples, nullptr);
    loader->Load(*samples, c.indices, c.windows, kept->inputs.data(), kept->labels.data());
    loader->Load(c.Bytes(), sent->inputs.data(), sent->labels.data());
    const Status status = backend.Wait();
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::unique_ptr<Backend> cuda_;
};

const Shape kShapes[] = {{1, 1, 1}, {1, 28, 28}, {3, 32, 32}, {2, 3, 17}, {5, 11, 2}};

TEST_F(CudaInputsTest, AreTheHostsBitForBit) {
  Rng rng(3, RngPurpose::kTest);
  for (const Shape& shape : kShapes) {
    for (const bool mean : {false, true}) {
      for (const bool cuts : {false, true}) {
        for (const int64_t batch : {1, 13, 64}) {
          SCOPED_TRACE(shape.ToString() + (mean ? ", mean" : "") + (cuts ? ", windows" : ""));
          const Case c(rng, shape, 30, batch, mean, cuts);
          Loaded kept(*cuda_, shape, c.batch());
          Loaded sent(*cuda_, shape, c.batch());
          LoadBothWays(*cuda_, c, &kept, &sent);
          const std::vector<uint32_t> expected = Bits(c.Inputs());
          ASSERT_EQ(Bits(kept.Inputs()), expected);
          ASSERT_EQ(Bits(sent.Inputs()), expected);
          ASSERT_EQ(kept.Labels(), c.labels);
          ASSERT_EQ(sent.Labels(), c.labels);
        }
      }
    }
  }
}

TEST_F(CudaInputsTest, InSixteenBitsAreTheHostsRoundedOnce) {
  Rng rng(4, RngPurpose::kTest);
  const std::pair<Precision, float> precisions[] = {{Precision::kBf16, 0x1p-8f},
                                                    {Precision::kFp16, 0x1p-11f}};
  for (const auto& [precision, unit] : precisions) {
    const std::unique_ptr<Backend> backend = MakeCudaBackend({.precision = precision}).value();
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Case c(rng, shape, 30, 9, true, true);
      Loaded kept(*backend, shape, c.batch());
      Loaded sent(*backend, shape, c.batch());
      LoadBothWays(*backend, c, &kept, &sent);
      const std::vector<float> expected = c.Inputs();
      const std::vector<float> found = kept.Inputs();
      for (size_t i = 0; i < expected.size(); ++i) {
        // fp16's subnormal numbers lie 2^-24 apart.
        ASSERT_NEAR(found[i], expected[i], unit * std::abs(expected[i]) + 0x1p-25f) << i;
      }
      EXPECT_EQ(Bits(sent.Inputs()), Bits(found));
    }
  }
}

// Each minibatch of another size, more of them than there are buffers, floats among them.
TEST_F(CudaInputsTest, WhatIsSentMayChangeAsSoonAsTheCallReturns) {
  Rng rng(5, RngPurpose::kTest);
  const Shape shape = {3, 8, 9};
  const PixelFormula pixels = test::RandomFormula(rng, shape.size(), true);
  const std::unique_ptr<InputLoader> loader = cuda_->MakeInputLoader(shape, pixels);
  std::vector<std::unique_ptr<Loaded>> loaded;
  std::vector<std::vector<float>> expected;
  std::vector<std::vector<int32_t>> labels;
  for (const int batch : {4, 9, 1, 30, 30, 2, 31}) {
    Case c(rng, shape, 50, batch, false, true);
    c.formula = pixels;
    expected.push_back(c.Inputs());
    labels.push_back(c.labels);
    loaded.push_back(std::make_unique<Loaded>(*cuda_, shape, batch));
    loader->Load(c.Bytes(), loaded.back()->inputs.data(), loaded.back()->labels.data());
    std::ranges::fill(c.sent, uint8_t{0});
    std::ranges::fill(c.labels, -1);
    std::ranges::fill(c.windows, Window());
    expected.push_back(std::vector<float>(static_cast<size_t>(batch * shape.size()), 0.5f));
    labels.emplace_back(batch);
    loaded.push_back(std::make_unique<Loaded>(*cuda_, shape, batch));
    std::vector<float> floats = expected.back();
    cuda_->LoadInputs(shape, batch, floats.data(), loaded.back()->inputs.data());
    std::ranges::fill(floats, 0.0f);
  }
  for (size_t i = 0; i < loaded.size(); ++i) {
    EXPECT_EQ(Bits(loaded[i]->Inputs()), Bits(expected[i])) << i;
    EXPECT_EQ(loaded[i]->Labels(), labels[i]) << i;
  }
}

TEST_F(CudaInputsTest, MinibatchesOfAKeptSetFollowOneAnother) {
  Rng rng(6, RngPurpose::kTest);
  const Shape shape = {3, 8, 9};
  const Case set(rng, shape, 50, 1, true, true);
  const std::unique_ptr<InputLoader> loader = cuda_->MakeInputLoader(shape, set.formula);
  const std::unique_ptr<DeviceSamples> samples = loader->KeepSamples(set.pixels, set.classes, 0);
  ASSERT_NE(samples, nullptr);
  std::vector<std::unique_ptr<Loaded>> loaded;
  std::vector<Case> cases;
  for (const int batch : {4, 9, 1, 30, 30, 2, 31}) {
    Case c = set;
    c.indices.clear();
    c.windows.clear();
    for (int k = 0; k < batch; ++k) {
      c.indices.push_back(static_cast<int64_t>(rng.NextBelow(50)));
      if (batch % 2 == 0) c.windows.push_back(test::RandomWindow(rng, 3));
    }
    loaded.push_back(std::make_unique<Loaded>(*cuda_, shape, batch));
    cases.push_back(c);
    loader->Load(*samples, c.indices, c.windows, loaded.back()->inputs.data(),
                 loaded.back()->labels.data());
    std::ranges::fill(c.indices, 0);
    std::ranges::fill(c.windows, Window());
  }
  for (size_t i = 0; i < loaded.size(); ++i) {
    EXPECT_EQ(Bits(loaded[i]->Inputs()), Bits(cases[i].Inputs())) << i;
  }
}

TEST_F(CudaInputsTest, AMinibatchThatDoesNotFitTheNetIsRefused) {
  const model::Network network = ParseNetwork(R"(
    name: "small"
    input { channels: 1 height: 3 width: 2 }
    layers { name: "flat" flatten {} }
    layers { name: "fc" fully_connected { outputs: 4 } }
    layers { name: "loss" softmax_cross_entropy {} })",
                                              "small")
                                     .value();
  const std::unique_ptr<Net> net = Net::Make(network, 3, cuda_.get()).value();
  const std::unique_ptr<InputLoader> loader = cuda_->MakeInputLoader(net->input(), {});
  const std::vector<uint8_t> pixels(30);
  const std::vector<int32_t> labels = {0, 3, 1, 0, 4};
  const std::vector<Window> windows(5);
  const auto load = [&](int size, size_t numbers, size_t first_label, size_t cut) {
    return net
        ->Load(loader.get(),
               PixelBatch{size, std::span(pixels).first(numbers),
                          std::span(labels).subspan(first_label, static_cast<size_t>(size)),
                          std::span(windows).first(cut)})
        .message();
  };
  EXPECT_EQ(load(3, 18, 0, 0), "");
  EXPECT_EQ(load(2, 12, 1, 2), "");
  EXPECT_THAT(load(4, 24, 0, 0), HasSubstr("the size of a minibatch"));
  EXPECT_THAT(load(3, 17, 0, 0), HasSubstr("has 18 numbers, not 17"));
  EXPECT_THAT(load(3, 18, 2, 0), HasSubstr("label 4"));
  EXPECT_THAT(load(3, 18, 0, 2), HasSubstr("2 windows"));
  const std::unique_ptr<DeviceSamples> samples =
      loader->KeepSamples(pixels, std::vector<uint8_t>(5), 0);
  const std::vector<int64_t> indices = {4, 0, 1, 2};
  EXPECT_TRUE(net->Load(loader.get(), *samples, std::span(indices).first(3), {}).ok());
  EXPECT_FALSE(net->Load(loader.get(), *samples, indices, {}).ok());
  EXPECT_FALSE(
      net->Load(loader.get(), *samples, std::span(indices).first(3), std::span(windows).first(1))
          .ok());
  EXPECT_TRUE(cuda_->Wait().ok());
}

TEST(CpuInputs, AreTheHostsToMake) {
  const std::unique_ptr<Backend> cpu = MakeCpuBackend(1);
  EXPECT_EQ(cpu->MakeInputLoader({1, 2, 2}, {}), nullptr);
}

}  // namespace
}  // namespace kumo
