// Dataset: a set of samples with random access.
//
// A dataset knows nothing of epochs, minibatches or threads: EpochPermutation defines the order of
// an epoch, and BatchStream cuts it into minibatches and reads them ahead.
//
// Readers (readers/registry.h) make datasets. A dataset must outlive every stream that reads from
// it. All methods are const and thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mapped_file.h"
#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/parameter_layout.h"
#include "data/samples/data_notes.h"
#include "data/samples/sample.h"

namespace kumo {

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Number of samples, at least 1.
  virtual int64_t size() const = 0;
  // Fields of each sample. Extents of 0 vary and are in Sample::extents.
  virtual const Fields& fields() const = 0;
  // Labels lie in [0, classes()); 0: labels are numbers.
  virtual int classes() const = 0;
  // Class names by number; empty if the files have none.
  virtual std::span<const std::string> class_names() const { return {}; }
  // Class of each sample, without reading any; empty if samples have no class of their own. An
  // image that is replaced because it is damaged keeps its class here.
  virtual std::vector<int32_t> SampleClasses() const { return {}; }
  // Things that the owner of the data may not have intended.
  virtual const DataNotes& notes() const;
  // Name for messages: the source of the samples.
  virtual const std::string& name() const = 0;

  // Fills `sample`, which was made for fields(), with sample key.sample; borrowed values live as
  // long as the dataset. Requires it to be in [0, size()). DataLoss or Unavailable if the source
  // fails. The rest of the key matters only to datasets that cut samples anew in each epoch, such
  // as text.
  virtual Status ReadKey(const SampleKey& key, Sample* sample) const = 0;
  // Reads a sample as in the first epoch of seed 1.
  Status Read(int64_t index, Sample* sample) const { return ReadKey({.sample = index}, sample); }
  // True if all samples are in memory, so that reading them is cheap.
  virtual bool in_memory() const { return false; }
  // The caller has read these samples: memory shared with other processes need not count as this
  // process's.
  virtual void LetGo(Range /*samples*/) const {}
};

// Size of a data set according to its files' headers.
struct DatasetExtents {
  int64_t samples = 0;
  Fields fields;
  int64_t bytes = 0;  // memory per process, without memory shared between processes
  DataNotes notes{};
  int64_t vocabulary = 0;                  // number of different tokens; 0: no tokens
  std::vector<std::string> class_names{};  // empty: classes have no names
};

// Calls `see` with each sample, or, if there are more than `most`, with that many evenly spaced
// ones. The errors of Dataset::Read.
Status ForEachSample(const Dataset& dataset, int64_t most,
                     const std::function<void(const Sample&)>& see);

// Positions of the fields in datasets of an image and a label.
inline constexpr int kImage = 0;
inline constexpr int kLabel = 1;
// Fields of an image of `extents` (channels x height x width) in bytes and a label.
Fields LabelledImage(std::vector<int64_t> extents);

// In-memory dataset of labelled images, one byte per pixel. It owns the pixels or maps them from a
// file.
//
// Immutable and thread-safe after NameClasses, SetSampleClasses and Note.
class MemoryDataset final : public Dataset {
 public:
  // Requires pixels for each label, at least one sample, and labels in [0, classes): readers check
  // a file's values before.
  MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                std::vector<uint8_t> pixels, std::vector<int32_t> labels);
  // pixels: a part of `file`.
  MemoryDataset(std::string name, std::vector<int64_t> extents, int classes,
                std::shared_ptr<const MappedFile> file, std::span<const uint8_t> pixels,
                std::vector<int32_t> labels);

  // Call it before the dataset is shared. Requires a name per class, or none.
  void NameClasses(std::vector<std::string> names);
  // Likewise, if they differ from the labels. Requires a class per sample.
  void SetSampleClasses(std::vector<int32_t> classes);
  // Likewise.
  void Note(DataNotes notes) { notes_ = std::move(notes); }

  int64_t size() const override { return std::ssize(labels_); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return class_names_; }
  std::vector<int32_t> SampleClasses() const override {
    return sample_classes_.empty() ? labels_ : sample_classes_;
  }
  const DataNotes& notes() const override { return notes_; }
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
  const std::vector<uint8_t> own_pixels_;  // empty if they are file_'s
  const std::shared_ptr<const MappedFile> file_;
  const std::span<const uint8_t> pixels_;
  const std::vector<int32_t> labels_;
  std::vector<int32_t> sample_classes_;  // empty: the labels
  std::vector<std::string> class_names_;
  DataNotes notes_;
};

}  // namespace kumo
