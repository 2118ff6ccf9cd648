#include "data/samples/dataset.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

namespace kumo {

namespace {

constexpr int64_t kSamplesAtOnce = 256;

}  // namespace

const DataNotes& Dataset::notes() const {
  static const DataNotes none;
  return none;
}

Status ForEachSample(const Dataset& dataset, int64_t most,
                     const std::function<void(const Sample&)>& see) {
  const int64_t count = std::min(most, dataset.size());
  Sample sample(dataset.fields());
  int64_t kept = 0;  // first sample that was not let go
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = count == dataset.size() ? i : i * dataset.size() / count;
    KUMO_RETURN_IF_ERROR(dataset.Read(index, &sample));
    see(sample);
    if (index + 1 - kept < kSamplesAtOnce && i + 1 < count) continue;
    dataset.LetGo({kept, index + 1});
    kept = index + 1;
  }
  return OkStatus();
}

Fields LabelledImage(std::vector<int64_t> extents) {
  return {{kImageField, NumberType::kUint8, std::move(extents), FieldKind::kPicture},
          {kLabelField, NumberType::kInt32, {}}};
}

MemoryDataset::MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                             std::vector<uint8_t> pixels, std::vector<int32_t> labels)
    : name_(std::move(name)),
      fields_(LabelledImage(std::move(extents))),
      classes_(classes),
      own_pixels_(std::move(pixels)),
      pixels_(own_pixels_),
      labels_(std::move(labels)) {
  CheckSizes();
}

MemoryDataset::MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                             std::shared_ptr<const MappedFile> file,
                             std::span<const uint8_t> pixels, std::vector<int32_t> labels)
    : name_(std::move(name)),
      fields_(LabelledImage(std::move(extents))),
      classes_(classes),
      file_(std::move(file)),
      pixels_(pixels),
      labels_(std::move(labels)) {
  CheckSizes();
}

void MemoryDataset::CheckSizes() const {
  CHECK(!labels_.empty()) << name_;
  CHECK_EQ(std::ssize(pixels_), size() * fields_[kImage].bytes()) << name_;
}

std::span<const uint8_t> MemoryDataset::Images(Range samples) const {
  const int64_t bytes = fields_[kImage].bytes();
  return pixels_.subspan(samples.begin * bytes, samples.size() * bytes);
}

void MemoryDataset::NameClasses(std::vector<std::string> names) {
  CHECK(names.empty() || std::ssize(names) == classes_) << name_;
  class_names_ = std::move(names);
}

void MemoryDataset::SetSampleClasses(std::vector<int32_t> classes) {
  CHECK_EQ(std::ssize(classes), size()) << name_;
  sample_classes_ = std::move(classes);
}

void MemoryDataset::LetGo(Range samples) const {
  if (file_) file_->LetGo(Images(samples));
}

Status MemoryDataset::ReadKey(const SampleKey& key, Sample* sample) const {
  const int64_t index = key.sample;
  CHECK(index >= 0 && index < size()) << name_ << ": sample " << index << " of " << size();
  sample->Borrow(kImage, std::as_bytes(Images({index, index + 1})));
  sample->Borrow(kLabel, std::as_bytes(std::span(labels_).subspan(index, 1)));
  return OkStatus();
}

}  // namespace kumo
