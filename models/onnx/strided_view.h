// Strided view: which element of an array lies at each place of another array, by a stride for each
// axis and an offset. Transposing, slicing and reshaping change the view, not the elements.
//
// A value; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumo {

// The product of extents that are each at least 1; none if it exceeds `most` or an extent is below
// 1.
std::optional<int64_t> SizeOfExtents(const std::vector<int64_t>& extents,
                                     int64_t most = int64_t{1} << 40);

struct StridedView {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  // by axis, in elements of the array
  int64_t offset = 0;

  // All elements of an array of these extents, whose size SizeOfExtents has checked, in C order.
  static StridedView Of(std::vector<int64_t> extents);

  int rank() const { return static_cast<int>(extents.size()); }
  int64_t size() const;
  // Whether the elements are the first size() ones of the array, in their order.
  bool IsInOrder() const;
  // Whether the view has each element of an array of that size exactly once.
  bool Covers(int64_t array_size) const;
  // Whether both views have the same elements at the same places.
  bool SamePlaces(const StridedView& other) const;
  // Axes of more than one element, from the largest stride to the smallest.
  std::vector<int> AxesByStride() const;

  // Axis i becomes axis axes[i] of this view: a permutation.
  StridedView Permuted(const std::vector<int>& axes) const;
  // With that axis in front of the others.
  StridedView WithAxisInFront(int axis) const;
  // Inverse of WithAxisInFront.
  StridedView WithFrontAxisAt(int axis) const;
  // `count` elements of an axis from `begin` on; within the extents.
  StridedView Sliced(int axis, int64_t begin, int64_t count) const;
  // The same elements in the same order with other extents of the same size; none if the result is
  // no strided view.
  std::optional<StridedView> Reshaped(const std::vector<int64_t>& to) const;
  // The element of the array at each place, in C order.
  std::vector<int64_t> Places() const;
  // "64x56x56"
  std::string ExtentsText() const;

  bool operator==(const StridedView&) const = default;
};

// visit(place) for each element of the view, in C order.
template <typename Visit>
void ForEachPlace(const StridedView& view, const Visit& visit) {
  if (view.size() == 0) return;
  std::vector<int64_t> index(view.extents.size());
  int64_t place = view.offset;
  while (true) {
    visit(place);
    size_t axis = index.size();
    while (axis > 0 && index[axis - 1] + 1 == view.extents[axis - 1]) {
      --axis;
      place -= index[axis] * view.strides[axis];
      index[axis] = 0;
    }
    if (axis == 0) return;
    ++index[axis - 1];
    place += view.strides[axis - 1];
  }
}

// The view whose elements are at these places of an array, one after the other; its extents are
// those that the places show. None if they are no strided view.
std::optional<StridedView> ViewOfPlaces(const std::vector<int64_t>& places);

}  // namespace kumo
