// A dataset of labelled images that lie in memory, one byte a pixel. The pixels are its own, or of
// a mapped file.
//
// Immutable once its classes have their names, hence thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mapped_file.h"
#include "data/dataset.h"

namespace kumo {

// An image of `extents` (channels x height x width) in bytes, and a label.
Fields LabelledImage(std::vector<int64_t> extents);

class MemoryDataset final : public Dataset {
 public:
  // Requires as many bytes as an image of `extents` has for each label, at least one sample, and
  // every label in [0, classes): readers check what comes from files before they build one.
  MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                std::vector<uint8_t> pixels, std::vector<int32_t> labels);
  // pixels: a part of `file`.
  MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                std::shared_ptr<const MappedFile> file, std::span<const uint8_t> pixels,
                std::vector<int32_t> labels);

  // To be called before others see it. Requires a name for each class, or none at all.
  void NameClasses(std::vector<std::string> names);

  int64_t size() const override { return std::ssize(labels_); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return class_names_; }
  const std::string& name() const override { return name_; }
  // Never fails, and copies nothing.
  Status ReadKey(const SampleKey& key, Sample* sample) const override;
  bool in_memory() const override { return true; }
  void LetGo(Range samples) const override;

 private:
  void CheckSizes() const;
  std::span<const uint8_t> Images(Range samples) const;

  const std::string name_;
  const Fields fields_;
  const int classes_;
  const std::vector<uint8_t> own_pixels_;  // empty where they are of file_
  const std::shared_ptr<const MappedFile> file_;
  const std::span<const uint8_t> pixels_;
  const std::vector<int32_t> labels_;
  std::vector<std::string> class_names_;
};

}  // namespace kumo
