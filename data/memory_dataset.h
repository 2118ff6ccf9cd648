// A dataset whose pixels and labels lie in memory, one byte a pixel and a label.
//
// Immutable after construction, hence thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace kumo {

class MemoryDataset final : public Dataset {
 public:
  // Requires pixels.size() == labels.size() * shape.size(), at least one sample, and every label in
  // [0, classes): readers check what comes from files before they build one.
  MemoryDataset(std::string name, SampleShape shape, int classes, std::vector<uint8_t> pixels,
                std::vector<uint8_t> labels);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  SampleShape shape() const override { return shape_; }
  int classes() const override { return classes_; }
  const std::string& name() const override { return name_; }
  // Never fails.
  Status Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
              std::span<int32_t> labels) const override;
  std::optional<RawSamples> raw() const override { return RawSamples{pixels_, labels_}; }

 private:
  std::string name_;
  SampleShape shape_;
  int classes_;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
};

}  // namespace kumo
