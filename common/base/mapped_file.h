// The bytes of a file as the kernel has them in its cache: all processes that map one take the
// memory once, and the kernel takes it back where it needs it.
//
// A mapped file must not be made shorter: reading what is then behind its end ends the process. So
// map what is replaced by renaming, not written again.
//
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace kumo {

class MappedFile {
 public:
  // NotFound or FailedPrecondition where it cannot be opened, InvalidArgument where it is empty or
  // not a regular file, ResourceExhausted where there is no room for it among the addresses.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }
  // Whoever has passed through a part of bytes() does not count its whole pages as memory of this
  // process any more. They are there again when they are read.
  void LetGo(std::span<const uint8_t> part) const;

 private:
  explicit MappedFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  const std::span<const uint8_t> bytes_;
};

}  // namespace kumo
