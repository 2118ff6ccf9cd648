// Parameter layout: the place of each tensor in the flat vector of parameters, which weights,
// gradients and optimiser state share.
//
// The vector has three segments, in this order; tensors keep their order inside a segment:
//   decayed     weights, trained, with weight decay
//   undecayed   biases and scales, trained, without weight decay
//   statistics  batch normalisation's running means and variances: averaged, never quantised
// Inside a segment, tensors with the same step factors (StepFactors) lie together as a group: one
// call steps a group, and a chunk of the shard map belongs to one group. Groups come in the order
// of their first tensors, frozen groups last.
//
// A group starts at a multiple of 16 floats (64 bytes), so every backend can use aligned loads; the
// few floats between two groups belong to no tensor and stay zero.
//
// Immutable after Make; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/optimiser/step_factors.h"

namespace kumo {

enum class Segment : int { kDecayed = 0, kUndecayed = 1, kStatistics = 2 };
constexpr int kSegments = 3;
std::string_view SegmentName(Segment segment);

// One tensor as a network declares it.
struct TensorSpec {
  std::string name;  // "conv1.weight"
  std::vector<int64_t> shape;
  Segment segment = Segment::kDecayed;
  StepFactors factors = {};  // frozen statistics are not averaged either

  int64_t size() const;
  // Whether an optimiser steps it.
  bool trained() const { return segment != Segment::kStatistics && !factors.frozen(); }
  std::string ShapeText() const;  // "[20, 1, 5, 5]"
  bool operator==(const TensorSpec&) const = default;
};

// A half-open range of positions in the flat vector.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Tensors of one segment with the same factors.
struct StepGroup {
  Segment segment = Segment::kDecayed;
  StepFactors factors;
  Range range;

  // Whether an optimiser steps it.
  bool trained() const { return segment != Segment::kStatistics && !factors.frozen(); }
};

class ParameterLayout {
 public:
  ParameterLayout() = default;

  // Refuses (InvalidArgument) empty or repeated names, sizes below 1, factors that are negative or
  // not finite, and more than 2^36 numbers: the specs may come from a peer.
  static Result<ParameterLayout> Make(std::vector<TensorSpec> tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Positions of tensor i.
  Range tensor(int i) const { return ranges_[i]; }
  Range segment(Segment segment) const { return segments_[static_cast<int>(segment)]; }
  // By position. Segments without a tensor have no group.
  const std::vector<StepGroup>& groups() const { return groups_; }
  // Length of the flat vector in floats, gaps included.
  int64_t size() const { return size_; }
  // The index of the tensor that holds `position`, or -1 for a gap.
  int TensorAt(int64_t position) const;
  // Hash of names, shapes, segments, order, and factors other than 1: equal exactly when two
  // networks can be trained together.
  uint64_t fingerprint() const { return fingerprint_; }
  // The first difference to another network in words, or "" if there is none.
  std::string FirstDifference(const ParameterLayout& other) const;

 private:
  std::vector<TensorSpec> tensors_;
  std::vector<Range> ranges_;
  std::array<Range, kSegments> segments_{};
  std::vector<StepGroup> groups_;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace kumo
