// Annotation room: the memory that the annotations of a set may take while they are read. A file of
// a few KiB in gzip may hold GiB of them.
//
// Owned and used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/printable.h"
#include "common/base/status.h"

namespace kumo {

// Bytes of an element of a vector, which grows by doubling.
template <typename T>
inline constexpr size_t kElementBytes = 2 * sizeof(T);
// Bytes of an entry of a table by numbers: its node, and its part of the buckets.
inline constexpr size_t kTableEntryBytes = 64;

class AnnotationRoom {
 public:
  explicit AnnotationRoom(int64_t bytes) : bytes_(bytes), left_(bytes) {}

  // Counts memory before it is taken. FailedPrecondition, without the file's name, if it does not
  // fit. Requires bytes >= 0.
  Status Take(int64_t bytes) {
    if (bytes <= left_) {
      left_ -= bytes;
      return OkStatus();
    }
    return FailedPrecondition("its annotations would exceed " +
                              HumanBytes(static_cast<uint64_t>(bytes_)) +
                              " of memory; remove images from the set, or use a machine with more");
  }

 private:
  int64_t bytes_;
  int64_t left_;
};

}  // namespace kumo
