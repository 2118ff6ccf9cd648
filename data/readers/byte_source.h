// Byte source: the content of a file, decompressed if it is gzip (RFC 1952), as recognised by its
// first two bytes, not by its name.
//
// Bytes are produced on demand in buffers of fixed size, so the decompressed size of a damaged or
// hostile file costs nothing. Checksum and length of a gzip member are verified at its end. Owned
// and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace kumo {

class ByteSource {
 public:
  // Errors as of FileSystem::OpenForReading: NotFound if the file does not exist, InvalidArgument
  // if it is not a regular file.
  static Result<ByteSource> Open(const std::string& path);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Fills `out` from the current position; returns the number of bytes, which is smaller than
  // requested only at the end. DataLoss, with file and offset, if a gzip stream is damaged or
  // truncated.
  Result<size_t> Read(std::span<uint8_t> out);

  const std::string& path() const;
  bool compressed() const;
  // Size of the file itself.
  int64_t file_size() const;
  // Upper bound on the content's size: the file's size, or 1032 times that for gzip (deflate codes
  // at best 258 bytes in two bits).
  int64_t max_content_size() const;
  // Bytes of content read so far.
  int64_t offset() const;

 private:
  struct State;
  explicit ByteSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kumo
