#include "models/backend/cuda/input_loader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <glog/logging.h>

#include "models/backend/cuda/kernels.h"

namespace kumo::cuda {
namespace {

struct Samples final : public DeviceSamples {
  int64_t bytes() const override { return pixels.bytes() + labels.bytes(); }

  DeviceArray<uint8_t> pixels;
  DeviceArray<int32_t> labels;
};

class Loader final : public InputLoader {
 public:
  Loader(Engine& engine, Staging& staging, InputBuffers& inputs, const Shape& shape,
         const PixelFormula& formula)
      : engine_(engine),
        staging_(staging),
        inputs_(inputs),
        shape_(shape),
        scale_(formula.scale),
        pad_value_(formula.pad_value),
        mean_(engine, std::ssize(formula.mean), "the mean image") {
    CHECK(formula.mean.empty() || std::ssize(formula.mean) == shape.size());
    staging.Write(formula.mean.data(), formula.mean.size() * sizeof(float), mean_.data());
  }

  // Labels and windows go first: then each kind lies where its type may.
  void Load(const PixelBatch& batch, void* inputs, int32_t* labels) override {
    const void* const sent = inputs_.Send(
        {std::as_bytes(batch.labels), std::as_bytes(batch.windows), std::as_bytes(batch.pixels)});
    if (sent == nullptr) return;
    static_assert(alignof(Window) <= alignof(int32_t));
    Images images;
    images.labels = static_cast<const int32_t*>(sent);
    const auto* const windows =
        reinterpret_cast<const Window*>(images.labels + batch.labels.size());
    if (!batch.windows.empty()) images.windows = windows;
    images.pixels = reinterpret_cast<const uint8_t*>(windows + batch.windows.size());
    Make(images, batch.labels.size(), inputs, labels);
    inputs_.Done();
  }

  void Load(const DeviceSamples& samples, std::span<const int64_t> indices,
            std::span<const Window> windows, void* inputs, int32_t* labels) override {
    const auto& kept = static_cast<const Samples&>(samples);
    host_picks_.resize(indices.size_bytes() + windows.size_bytes());
    std::ranges::copy(std::as_bytes(indices), host_picks_.begin());
    std::ranges::copy(std::as_bytes(windows),
                      host_picks_.begin() + std::ssize(std::as_bytes(indices)));
    if (picks_.size() < std::ssize(host_picks_)) {
      picks_ =
          DeviceArray<std::byte>(engine_, std::ssize(host_picks_), "which samples a minibatch has");
    }
    if (picks_.empty()) return;  // something has failed
    staging_.Write(host_picks_.data(), host_picks_.size(), picks_.data());
    Images images;
    images.pixels = kept.pixels.data();
    images.labels = kept.labels.data();
    images.indices = reinterpret_cast<const int64_t*>(picks_.data());
    if (!windows.empty()) {
      images.windows = reinterpret_cast<const Window*>(images.indices + indices.size());
    }
    Make(images, indices.size(), inputs, labels);
  }

  std::unique_ptr<DeviceSamples> KeepSamples(std::span<const uint8_t> pixels,
                                             std::span<const uint8_t> labels,
                                             int64_t reserve) override {
    // As much again is left to the libraries' workspace.
    const size_t bytes = pixels.size() + labels.size() * sizeof(int32_t);
    if (engine_.FreeBytes() / 2 < bytes + static_cast<size_t>(reserve)) return nullptr;
    const std::vector<int32_t> wide(labels.begin(), labels.end());
    auto samples = std::make_unique<Samples>();
    samples->pixels = TryArray<uint8_t>(engine_, std::ssize(pixels), "the data set");
    samples->labels = TryArray<int32_t>(engine_, std::ssize(wide), "the data set's labels");
    if (samples->pixels.empty() || samples->labels.empty()) return nullptr;
    staging_.Write(pixels.data(), pixels.size(), samples->pixels.data());
    staging_.Write(wide.data(), wide.size() * sizeof(int32_t), samples->labels.data());
    return samples;
  }

 private:
  void Make(Images images, size_t batch, void* inputs, int32_t* labels) {
    images.height = static_cast<int>(shape_.height);
    images.width = static_cast<int>(shape_.width);
    const PixelNumbers numbers = {scale_, pad_value_, mean_.empty() ? nullptr : mean_.data()};
    KUMO_CUDA(engine_, Gather(engine_.launch(), engine_.ShapeOf(shape_, static_cast<int>(batch)),
                              images, numbers, inputs, labels));
  }

  Engine& engine_;
  Staging& staging_;
  InputBuffers& inputs_;
  const Shape shape_;
  const float scale_;
  const uint8_t pad_value_;
  DeviceArray<float> mean_;
  // Of the minibatch that is loaded from a data set on the device: indices, then windows.
  DeviceArray<std::byte> picks_;
  std::vector<std::byte> host_picks_;
};

}  // namespace

std::unique_ptr<InputLoader> MakeInputLoader(Engine& engine, Staging& staging, InputBuffers& inputs,
                                             const Shape& shape, const PixelFormula& formula) {
  return std::make_unique<Loader>(engine, staging, inputs, shape, formula);
}

}  // namespace kumo::cuda
