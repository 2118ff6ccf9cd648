#include "data/memory_dataset.h"

#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

// Kept apart and plain so that the compiler turns it into vector instructions (CMakeLists.txt asks
// for -O3); one rounding per number, so every instruction set gives the same bits.
void ScalePixels(const uint8_t* __restrict pixels, int64_t count, float scale,
                 float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(pixels[i]);
}

}  // namespace

MemoryDataset::MemoryDataset(std::string name, SampleShape shape, int classes,
                             std::vector<uint8_t> pixels, std::vector<uint8_t> labels)
    : name_(std::move(name)),
      shape_(shape),
      classes_(classes),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)) {
  CHECK(!labels_.empty()) << name_;
  CHECK_EQ(static_cast<int64_t>(pixels_.size()), size() * shape_.size()) << name_;
}

Status MemoryDataset::Read(std::span<const int64_t> indices, float scale, std::span<float> inputs,
                           std::span<int32_t> labels) const {
  const int64_t sample_size = shape_.size();
  CHECK_EQ(inputs.size(), indices.size() * static_cast<size_t>(sample_size)) << name_;
  CHECK_EQ(labels.size(), indices.size()) << name_;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t index = indices[k];
    CHECK(index >= 0 && index < size()) << name_ << ": sample " << index << " of " << size();
    ScalePixels(pixels_.data() + index * sample_size, sample_size, scale,
                inputs.data() + static_cast<int64_t>(k) * sample_size);
    labels[k] = labels_[index];
  }
  return OkStatus();
}

}  // namespace kumo
