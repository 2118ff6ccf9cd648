#include "common/checkpoint/snapshot.h"

#include <algorithm>

namespace kumo {
namespace {

int64_t End(const StateArray& array) {
  return array.begin + static_cast<int64_t>(array.numbers.size());
}

}  // namespace

bool Overlaps(const StateArray& array, Range range) {
  return array.begin < range.end && End(array) > range.begin;
}

int64_t CopyOverlap(const StateArray& array, Range range, std::span<float> out) {
  const int64_t begin = std::max(array.begin, range.begin);
  const int64_t end = std::min(End(array), range.end);
  if (begin >= end) return 0;
  std::copy_n(array.numbers.data() + (begin - array.begin), end - begin,
              out.data() + (begin - range.begin));
  return end - begin;
}

}  // namespace kumo
