// A stored model's network on its device, ready to be asked what it makes of samples.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "models/backend/device_array.h"
#include "models/net.h"
#include "worker/inference/stored_model.h"

namespace kumo {

class RunningModel {
 public:
  // For up to max_batch samples of one input: int32 where that is of whole numbers, else `type`;
  // of an image in bytes `pixels` makes numbers. Requires a network of one input. As MakeBackend,
  // Net::Make and Net::Connect.
  static Result<std::unique_ptr<RunningModel>> Make(const StoredModel& model,
                                                    const model::Network& network, int max_batch,
                                                    NumberType type, const PixelFormula& pixels);

  const Net& net() const { return *net_; }
  // numbers: of each of `batch` samples that output of net(). As Net::Load and Net::Predict.
  Status Predict(int batch, std::span<const std::byte> input, int output, std::span<float> numbers);

 private:
  RunningModel() = default;

  std::unique_ptr<Backend> backend_;  // outlives what follows
  std::unique_ptr<Net> net_;
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;  // nobody computes them, but a net is told where they would be
  Fields takes_;
  std::vector<std::byte> labels_;  // which mean nothing
};

}  // namespace kumo
