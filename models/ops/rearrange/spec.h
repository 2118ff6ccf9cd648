// Rearrangement of elements: reshape, permute, slice and pixel shuffle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/tensor/tensor.h"

namespace kumo {

// Elements between neighbours along each axis of an array in row-major order.
inline std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t axis = extents.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * extents[axis];
  }
  return strides;
}

// Element (i_0, i_1, ...) of the output is element offset + sum i_a stride_a of the input, in
// row-major order. No element is taken twice.
struct RearrangeSpec {
  Shape input;
  Shape output;
  std::vector<int64_t> strides;  // as many as extents()
  int64_t offset = 0;
  // The output's extents with some of them as products of several: of as many elements, in the same
  // order. Empty: its extents.
  std::vector<int64_t> split = {};

  bool operator==(const RearrangeSpec&) const = default;
  // Extents of the axes that the strides go along.
  const std::vector<int64_t>& extents() const { return split.empty() ? output.extents() : split; }
  // The input's element that becomes the output's element i.
  int64_t SourceOf(int64_t i) const {
    int64_t source = offset;
    for (size_t axis = strides.size(); axis-- > 0;) {
      source += i % extents()[axis] * strides[axis];
      i /= extents()[axis];
    }
    return source;
  }
  // Whether all elements keep their places.
  bool keeps_order() const {
    if (output.size() != input.size()) return false;
    const std::vector<int64_t> row_major = RowMajorStrides(extents());
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      if (extents()[axis] > 1 && strides[axis] != row_major[axis]) return false;
    }
    return true;
  }
  // False if the last axis, the positions, stays as it is and only the other axes move.
  bool looks_ahead(int64_t positions) const {
    if (input.extents().back() != positions || output.extents().back() != positions ||
        extents().back() != positions || strides.back() != 1 || offset % positions != 0) {
      return true;
    }
    for (size_t axis = 0; axis + 1 < strides.size(); ++axis) {
      if (strides[axis] % positions != 0) return true;
    }
    return false;
  }
};

// Pixel (c, f y + i, f x + j) of the output is pixel (c f^2 + i f + j, y, x) of the input. Requires
// a multiple of f^2 channels.
inline RearrangeSpec PixelShuffleSpec(const Shape& input, int64_t factor) {
  const int64_t channels = input.channels() / (factor * factor);
  const int64_t plane = input.plane();
  RearrangeSpec spec;
  spec.input = input;
  spec.output = {channels, input.height() * factor, input.width() * factor};
  spec.split = {channels, input.height(), factor, input.width(), factor};
  spec.strides = {factor * factor * plane, input.width(), factor * plane, 1, plane};
  return spec;
}

}  // namespace kumo
