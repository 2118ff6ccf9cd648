#include "models/backend/cuda/input_loader.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "models/backend/cuda/kernels.h"

namespace kumo::cuda {
namespace {

class Loader final : public InputLoader {
 public:
  Loader(CudaEngine& engine, PinnedStaging& staging, InputBuffers& inputs,
         std::vector<InputField> fields)
      : engine_(engine), inputs_(inputs), fields_(std::move(fields)), parts_(fields_.size()) {
    for (const InputField& field : fields_) {
      const std::vector<float>& mean = field.pixels.mean;
      CHECK(mean.empty() || std::ssize(mean) == field.shape.size());
      const std::vector<float>& scales = field.pixels.scales;
      CHECK(scales.empty() || std::ssize(scales) == field.shape.channels());
      Keep(engine, staging, mean, "the mean image", &means_);
      Keep(engine, staging, scales, "the channels' scales", &scales_);
    }
  }

  void Load(const SampleBatch& batch, std::span<void* const> arrays) override {
    // Bytes go last, so that each type is aligned.
    size_t next = 0;
    for (const bool bytes : {false, true}) {
      for (size_t f = 0; f < fields_.size(); ++f) {
        if ((fields_[f].type == NumberType::kUint8) == bytes) parts_[next++] = batch.fields[f];
      }
    }
    const auto* sent = static_cast<const std::byte*>(inputs_.Send(parts_));
    if (sent == nullptr) return;
    for (const bool bytes : {false, true}) {
      for (size_t f = 0; f < fields_.size(); ++f) {
        if ((fields_[f].type == NumberType::kUint8) != bytes) continue;
        LoadField(f, batch.size, sent, batch.fields[f].size(), arrays[f]);
        sent += batch.fields[f].size();
      }
    }
    inputs_.Done();
  }

 private:
  static void Keep(CudaEngine& engine, PinnedStaging& staging, const std::vector<float>& numbers,
                   const char* what, std::vector<DeviceArray<float>>* arrays) {
    arrays->emplace_back(engine, std::ssize(numbers), what);
    staging.Write(numbers.data(), numbers.size() * sizeof(float), arrays->back().data());
  }
  static const float* OrNull(const DeviceArray<float>& array) {
    return array.empty() ? nullptr : array.data();
  }

  void LoadField(size_t f, int batch, const std::byte* sent, size_t bytes, void* to) {
    const InputField& field = fields_[f];
    if (field.is_target || field.type == NumberType::kInt32) {
      KUMO_CUDA(engine_,
                cudaMemcpyAsync(to, sent, bytes, cudaMemcpyDeviceToDevice, engine_.stream()));
      return;
    }
    if (field.type == NumberType::kUint8) {
      KUMO_CUDA(engine_,
                LoadPixels(engine_.launch(), engine_.ShapeOf(field.shape, batch),
                           reinterpret_cast<const uint8_t*>(sent),
                           {field.pixels.scale, OrNull(means_[f]), OrNull(scales_[f])}, to));
      return;
    }
    KUMO_CUDA(engine_, Transpose(engine_.launch(), Precision::kFp32, sent,
                                 engine_.HostOrder(field.shape, batch), engine_.precision(), to));
  }

  CudaEngine& engine_;
  InputBuffers& inputs_;
  const std::vector<InputField> fields_;
  std::vector<DeviceArray<float>> means_;  // by field
  std::vector<DeviceArray<float>> scales_;
  std::vector<InputBuffers::Part> parts_;  // of the batch that is loaded
};

}  // namespace

std::unique_ptr<InputLoader> MakeInputLoader(CudaEngine& engine, PinnedStaging& staging,
                                             InputBuffers& inputs, std::vector<InputField> fields) {
  return std::make_unique<Loader>(engine, staging, inputs, std::move(fields));
}

}  // namespace kumo::cuda
