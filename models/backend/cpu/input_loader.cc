#include "models/backend/cpu/input_loader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "models/backend/cpu/layout.h"
#include "models/backend/device_array.h"

namespace kumo::cpu {
namespace {

class Loader final : public InputLoader {
 public:
  Loader(DeviceQueue& memory, const CpuEngine& engine, std::vector<InputField> fields,
         int max_batch)
      : memory_(memory), engine_(engine), fields_(std::move(fields)) {
    int64_t numbers = 0;
    for (const InputField& field : fields_) {
      const std::vector<float>& mean = field.pixels.mean;
      CHECK(mean.empty() || std::ssize(mean) == field.shape.size());
      const std::vector<float>& scales = field.pixels.scales;
      CHECK(scales.empty() || std::ssize(scales) == field.shape.channels());
      if (field.type == NumberType::kUint8) numbers = std::max(numbers, field.shape.size());
    }
    scaled_ = DeviceArray<float>(memory, numbers * max_batch, "a minibatch's pixels");
  }

  void Load(const SampleBatch& batch, std::span<void* const> arrays) override {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const std::span<const std::byte> from = batch.fields[f];
      if (fields_[f].is_target) {
        memory_.Write(from.data(), from.size(), arrays[f]);
        continue;
      }
      switch (fields_[f].type) {
        case NumberType::kUint8:
          LoadPixels(fields_[f], batch.size, reinterpret_cast<const uint8_t*>(from.data()),
                     arrays[f]);
          break;
        case NumberType::kFloat32:
          Transpose(fields_[f], batch.size, reinterpret_cast<const float*>(from.data()), arrays[f]);
          break;
        case NumberType::kInt32:
          memory_.Write(from.data(), from.size(), arrays[f]);
          break;
      }
    }
  }

 private:
  void LoadPixels(const InputField& field, int batch, const uint8_t* pixels, void* to) {
    if (scaled_.empty()) return;  // there was no memory, which the device says
    const int64_t size = field.shape.size();
    ScalePictures(field.pixels, field.shape.channels(), field.shape.plane(),
                  std::span(pixels, static_cast<size_t>(batch * size)), scaled_.data());
    Transpose(field, batch, scaled_.data(), to);
  }
  void Transpose(const InputField& field, int batch, const float* from, void* to) {
    engine_.elementwise.transpose(from, batch, field.shape.size(), engine_.Lanes(batch),
                                  static_cast<float*>(to));
  }

  DeviceQueue& memory_;
  const CpuEngine& engine_;
  const std::vector<InputField> fields_;
  DeviceArray<float> scaled_;  // a minibatch's pixels by their formula, sample by sample
};

}  // namespace

std::unique_ptr<InputLoader> MakeInputLoader(DeviceQueue& memory, const CpuEngine& engine,
                                             std::vector<InputField> fields, int max_batch) {
  return std::make_unique<Loader>(memory, engine, std::move(fields), max_batch);
}

}  // namespace kumo::cpu
