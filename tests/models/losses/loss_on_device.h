// One loss of one input and one target on one backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/layers/loss.h"
#include "models/network.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {

struct FoundLoss {
  std::vector<double> sums;
  std::vector<float> gradient;  // of the scores
};

// scores: batch x spec.scores; labels: int32_t or float, as the host has them.
template <typename Spec, typename Number>
FoundLoss RunLoss(const Setting& setting, const Spec& spec, int batch,
                  const std::vector<float>& scores, const std::vector<Number>& labels) {
  const auto backend = setting.make();
  const auto loss = backend->MakeLoss(spec, batch).value();
  const int64_t bytes = backend->ActivationBytes(spec.scores, batch);
  DeviceArray<std::byte> device(*backend, bytes, "scores");
  DeviceArray<std::byte> gradient(*backend, bytes, "their gradients");
  DeviceArray<Number> device_labels(*backend, std::ssize(labels), "labels");
  DeviceArray<double> sums(*backend, spec.sums(), "sums");
  // A gradient that is not overwritten shows.
  const std::vector<float> wrong(static_cast<size_t>(bytes) / sizeof(float), 1e6f);
  backend->Write(wrong.data(), wrong.size() * sizeof(float), gradient.data());
  backend->SetStep({});
  backend->Write(labels.data(), labels.size() * sizeof(Number), device_labels.data());
  LoadActivations(*backend, spec.scores, batch, scores.data(), device.data());
  const void* const inputs[] = {device.data()};
  const TargetArray targets[] = {{device_labels.data()}};
  void* const gradients[] = {gradient.data()};
  loss->Run(batch, {inputs, targets, gradients}, sums.data());
  FoundLoss found = {std::vector<double>(static_cast<size_t>(spec.sums())),
                     std::vector<float>(scores.size())};
  EXPECT_TRUE(
      backend->Read(sums.data(), found.sums.size() * sizeof(double), found.sums.data()).ok());
  backend->StoreOutputs(spec.scores, batch, gradient.data(), found.gradient.data());
  if (backend->name() == "cpu") {
    std::vector<float> all(wrong.size());
    EXPECT_TRUE(backend->Read(gradient.data(), static_cast<size_t>(bytes), all.data()).ok());
    EXPECT_EQ(SumOfSizes(all), SumOfSizes(found.gradient)) << "padding must hold zeros";
  }
  return found;
}

// Labels of masks: the classes of positions; some positions are ignored.
inline std::vector<int32_t> SomeClasses(int64_t n, int64_t classes, int ignored, Rng* rng) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    labels.push_back(static_cast<int32_t>(rng->NextBelow(static_cast<uint64_t>(classes))));
    if (ignored >= 0 && rng->NextBelow(3) == 0) labels.back() = ignored;
  }
  return labels;
}

// The refusal of a network with this loss of scores 3 x 4 x 4; "" if there is none.
inline std::string RefusalOfLoss(const std::string& loss) {
  const auto network = ParseNetwork(
      "name: 'n' input { channels: 3 height: 4 width: 4 } layers { name: 'scores' convolution { "
      "outputs: 3 kernel: 1 } } "
      "layers { name: 'loss' " +
          loss + " }",
      "n");
  return network.ok() ? "" : network.status().message();
}

}  // namespace kumo
