// A dataset whose pixels and labels lie in memory, one byte a pixel and a label. The pixels are its
// own, or of a mapped file.
//
// Immutable after construction, hence thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mapped_file.h"
#include "data/dataset.h"

namespace kumo {

class MemoryDataset final : public Dataset {
 public:
  // Requires pixels.size() == labels.size() * shape.size(), at least one sample, and every label in
  // [0, classes): readers check what comes from files before they build one.
  MemoryDataset(std::string name, SampleShape shape, int classes, std::vector<uint8_t> pixels,
                std::vector<uint8_t> labels);
  // pixels: a part of `file`.
  MemoryDataset(std::string name, SampleShape shape, int classes,
                std::shared_ptr<const MappedFile> file, std::span<const uint8_t> pixels,
                std::vector<uint8_t> labels);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  SampleShape shape() const override { return shape_; }
  int classes() const override { return classes_; }
  const std::string& name() const override { return name_; }
  // Never fails.
  Status Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
              std::span<int32_t> labels) const override;
  std::optional<RawSamples> raw() const override { return RawSamples{pixels_, labels_}; }
  void LetGo(std::span<const uint8_t> pixels) const override;

 private:
  void CheckSizes() const;

  const std::string name_;
  const SampleShape shape_;
  const int classes_;
  const std::vector<uint8_t> own_pixels_;  // empty where they are of file_
  const std::shared_ptr<const MappedFile> file_;
  const std::span<const uint8_t> pixels_;
  const std::vector<uint8_t> labels_;
};

}  // namespace kumo
