// A set of labelled samples that can be read in any order.
//
// A dataset knows nothing of epochs, minibatches or threads: permutation.h says in which order an
// epoch visits the samples, batch_stream.h cuts that order into minibatches and reads them ahead.
//
// Readers (readers/registry.h) make datasets; whoever opened one owns it, and it outlives every
// stream that reads from it. All methods are const and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// One sample's extents; its numbers lie channel by channel, row by row (CHW).
struct SampleShape {
  int64_t channels = 1;
  int64_t height = 0;
  int64_t width = 0;

  int64_t size() const { return channels * height * width; }
  bool operator==(const SampleShape&) const = default;
};

// A whole data set as it lies in memory, one byte a pixel and a label: samples one after the other.
struct RawSamples {
  std::span<const uint8_t> pixels;
  std::span<const uint8_t> labels;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Samples; at least 1.
  virtual int64_t size() const = 0;
  virtual SampleShape shape() const = 0;
  // Labels lie in [0, classes()).
  virtual int classes() const = 0;
  // Messages name the set by this: where its samples come from.
  virtual const std::string& name() const = 0;

  // Reads the samples `indices` in that order: pixels[k * shape().size() + j] is pixel j of sample
  // indices[k] (so NCHW), labels[k] its label. Requires every index in [0, size()),
  // pixels.size() == indices.size() * shape().size() and labels.size() == indices.size().
  // DataLoss or Unavailable when what holds the samples fails.
  virtual Status Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
                      std::span<int32_t> labels) const = 0;
  // All samples, where the set has them in memory: for who needs no copy, and for a device that
  // keeps one. Borrowed for the set's life.
  virtual std::optional<RawSamples> raw() const { return std::nullopt; }
  // Whoever has passed through a part of raw()->pixels says so: what others hold as well need not
  // count as this process' memory.
  virtual void LetGo(std::span<const uint8_t> /*pixels*/) const {}
};

// How large a data set is, as its files' headers say.
struct DatasetExtents {
  int64_t samples = 0;
  SampleShape shape;
  bool mapped = false;  // pixels lie in a file that all processes of the machine share

  // Of a set that lies in memory: one byte a pixel and a label.
  int64_t bytes() const { return samples * (shape.size() + 1); }
};

struct Datasets {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  std::vector<float> mean;  // of the training images; empty where none is subtracted
};

}  // namespace kumo
