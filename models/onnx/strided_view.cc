#include "models/onnx/strided_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <glog/logging.h>

namespace kumo {

std::optional<int64_t> SizeOfExtents(const std::vector<int64_t>& extents, int64_t most) {
  int64_t size = 1;
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > most / size) return std::nullopt;
    size *= extent;
  }
  return size;
}

StridedView StridedView::Of(std::vector<int64_t> extents) {
  StridedView view = {std::move(extents), {}, 0};
  view.strides.assign(view.extents.size(), 1);
  for (size_t axis = view.extents.size(); axis-- > 1;) {
    view.strides[axis - 1] = view.strides[axis] * view.extents[axis];
  }
  return view;
}

int64_t StridedView::size() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

bool StridedView::IsInOrder() const {
  const StridedView in_order = Of(extents);
  return offset == 0 && SamePlaces(in_order);
}

bool StridedView::Covers(int64_t array_size) const {
  if (offset != 0 || size() != array_size) return false;
  int64_t expected = array_size;
  for (const int axis : AxesByStride()) {
    if (strides[axis] < 1 || strides[axis] * extents[axis] != expected) return false;
    expected = strides[axis];
  }
  return expected == 1;
}

bool StridedView::SamePlaces(const StridedView& other) const {
  if (extents != other.extents || offset != other.offset) return false;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] > 1 && strides[axis] != other.strides[axis]) return false;
  }
  return true;
}

std::vector<int> StridedView::AxesByStride() const {
  std::vector<int> axes;
  for (int axis = 0; axis < rank(); ++axis) {
    if (extents[axis] > 1) axes.push_back(axis);
  }
  std::ranges::stable_sort(axes, std::greater<>(), [this](int axis) { return strides[axis]; });
  return axes;
}

StridedView StridedView::Permuted(const std::vector<int>& axes) const {
  CHECK_EQ(axes.size(), extents.size());
  StridedView view = {{}, {}, offset};
  for (const int axis : axes) {
    view.extents.push_back(extents[axis]);
    view.strides.push_back(strides[axis]);
  }
  return view;
}

StridedView StridedView::WithAxisInFront(int axis) const {
  std::vector<int> axes = {axis};
  for (int i = 0; i < rank(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  return Permuted(axes);
}

StridedView StridedView::WithFrontAxisAt(int axis) const {
  std::vector<int> axes(rank() - 1);
  std::iota(axes.begin(), axes.end(), 1);
  axes.insert(axes.begin() + axis, 0);
  return Permuted(axes);
}

StridedView StridedView::Sliced(int axis, int64_t begin, int64_t count) const {
  CHECK(begin >= 0 && count >= 1 && begin + count <= extents[axis]);
  StridedView view = *this;
  view.offset += begin * strides[axis];
  view.extents[axis] = count;
  return view;
}

std::optional<StridedView> StridedView::Reshaped(const std::vector<int64_t>& to) const {
  StridedView view = {to, std::vector<int64_t>(to.size(), 1), offset};
  if (view.size() != size()) return std::nullopt;
  // Groups of axes, here and there, of the same size; inside a group the elements must have one
  // stride.
  size_t from = 0;
  size_t at = 0;
  while (at < to.size()) {
    if (to[at] == 1) {
      ++at;
      continue;
    }
    while (extents[from] == 1) ++from;  // elements are left, so that axes are
    int64_t here = extents[from];
    int64_t there = to[at];
    int64_t stride = strides[from];
    size_t last = at;
    ++from;
    while (here != there) {
      if (there < here) {
        there *= to[++last];
        continue;
      }
      if (extents[from] > 1) {
        if (stride != strides[from] * extents[from]) return std::nullopt;
        stride = strides[from];
      }
      here *= extents[from++];
    }
    for (size_t axis = last + 1; axis-- > at;) {
      view.strides[axis] = stride;
      stride *= to[axis];
    }
    at = last + 1;
  }
  return view;
}

std::vector<int64_t> StridedView::Places() const {
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(size()));
  ForEachPlace(*this, [&places](int64_t place) { places.push_back(place); });
  return places;
}

std::string StridedView::ExtentsText() const {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

std::optional<StridedView> ViewOfPlaces(const std::vector<int64_t>& places) {
  if (places.empty()) return std::nullopt;
  StridedView view = {{}, {}, places[0]};
  // The innermost axis is the longest run of one stride; the runs' first places are the next axes.
  std::vector<int64_t> firsts = places;
  while (firsts.size() > 1) {
    const int64_t stride = firsts[1] - firsts[0];
    size_t run = 2;
    while (run < firsts.size() && firsts[run] - firsts[run - 1] == stride) ++run;
    if (stride < 1 || firsts.size() % run != 0) return std::nullopt;
    std::vector<int64_t> next;
    for (size_t i = 0; i < firsts.size(); ++i) {
      if (i % run == 0) {
        next.push_back(firsts[i]);
      } else if (firsts[i] - firsts[i - 1] != stride) {
        return std::nullopt;
      }
    }
    view.extents.insert(view.extents.begin(), static_cast<int64_t>(run));
    view.strides.insert(view.strides.begin(), stride);
    firsts = std::move(next);
  }
  if (view.extents.empty()) view = {{1}, {1}, places[0]};
  return view;
}

}  // namespace kumo
