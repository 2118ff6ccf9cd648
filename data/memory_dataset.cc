#include "data/memory_dataset.h"

#include <cstring>
#include <utility>

#include <glog/logging.h>

namespace kumo {

MemoryDataset::MemoryDataset(std::string name, SampleShape shape, int classes,
                             std::vector<uint8_t> pixels, std::vector<uint8_t> labels)
    : name_(std::move(name)),
      shape_(shape),
      classes_(classes),
      own_pixels_(std::move(pixels)),
      pixels_(own_pixels_),
      labels_(std::move(labels)) {
  CheckSizes();
}

MemoryDataset::MemoryDataset(std::string name, SampleShape shape, int classes,
                             std::shared_ptr<const MappedFile> file,
                             std::span<const uint8_t> pixels, std::vector<uint8_t> labels)
    : name_(std::move(name)),
      shape_(shape),
      classes_(classes),
      file_(std::move(file)),
      pixels_(pixels),
      labels_(std::move(labels)) {
  CheckSizes();
}

void MemoryDataset::CheckSizes() const {
  CHECK(!labels_.empty()) << name_;
  CHECK_EQ(static_cast<int64_t>(pixels_.size()), size() * shape_.size()) << name_;
}

void MemoryDataset::LetGo(std::span<const uint8_t> pixels) const {
  if (file_) file_->LetGo(pixels);
}

Status MemoryDataset::Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
                           std::span<int32_t> labels) const {
  const auto sample_size = static_cast<size_t>(shape_.size());
  CHECK_EQ(pixels.size(), indices.size() * sample_size) << name_;
  CHECK_EQ(labels.size(), indices.size()) << name_;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t index = indices[k];
    CHECK(index >= 0 && index < size()) << name_ << ": sample " << index << " of " << size();
    std::memcpy(pixels.data() + k * sample_size,
                pixels_.data() + static_cast<size_t>(index) * sample_size, sample_size);
    labels[k] = labels_[index];
  }
  return OkStatus();
}

}  // namespace kumo
