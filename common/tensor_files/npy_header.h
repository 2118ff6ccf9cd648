// What stands before the numbers of a .npy file (numpy's format, version 1.0 to 3.0): a magic word,
// a length, and a dictionary as Python writes it:
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (20, 1, 5, 5), }
//
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// The bytes of version 1.0, a multiple of 64. Of float32, the last extent's numbers side by side.
std::string NpyHeaderBytes(std::span<const int64_t> shape);

// How many bytes stand before the dictionary, and how long that is, by the first kNpyPrefix bytes.
inline constexpr size_t kNpyPrefix = 10;
inline constexpr size_t kLongestNpyHeader = 64 << 10;
struct NpyPrefix {
  size_t more = 0;  // bytes of the length that are not among the first ones yet
  size_t length = 0;
};
// DataLoss where it is no .npy file, or of a version that we do not know.
Result<NpyPrefix> ParseNpyPrefix(std::span<const std::byte, kNpyPrefix> bytes);

// DataLoss where the dictionary is none, or lacks one of the three.
Result<NpyHeader> ParseNpyHeader(std::string_view dictionary);

}  // namespace kumo
