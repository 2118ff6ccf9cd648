// Header of a .npy file (numpy's format, versions 1.0 to 3.0): a magic string, a length, and a
// dictionary in Python's syntax:
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

// The header of version 1.0 for float32 in C order; its length is a multiple of 64.
std::string NpyHeaderBytes(std::span<const int64_t> shape);

// The length of the dictionary, from the first kNpyPrefix bytes, and the number of bytes before it.
inline constexpr size_t kNpyPrefix = 10;
inline constexpr size_t kLongestNpyHeader = 64 << 10;
struct NpyPrefix {
  size_t more = 0;  // bytes of the length field beyond the prefix
  size_t length = 0;
};
// DataLoss if the file is no .npy file or has an unknown version.
Result<NpyPrefix> ParseNpyPrefix(std::span<const std::byte, kNpyPrefix> bytes);

// DataLoss if the dictionary is malformed or lacks one of the three keys.
Result<NpyHeader> ParseNpyHeader(std::string_view dictionary);

}  // namespace kumo
