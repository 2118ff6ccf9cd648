// Memory-mapped file: read-only bytes in the kernel's page cache, shared by all processes that map
// the file and reclaimed when memory is short.
//
// The file must not be truncated while mapped, because reading past its new end kills the process.
// Map only files that are replaced by renaming, not rewritten in place.
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
  // NotFound or FailedPrecondition if the file cannot be opened, InvalidArgument if it is empty or
  // no regular file, ResourceExhausted if the address space is exhausted.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }
  // Drops the whole pages in `part`, a part of bytes(), from this process's resident memory. They
  // are loaded again when read.
  void LetGo(std::span<const uint8_t> part) const;

 private:
  explicit MappedFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  const std::span<const uint8_t> bytes_;
};

}  // namespace kumo
