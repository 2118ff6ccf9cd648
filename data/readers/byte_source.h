// The bytes of a file, unpacked where the file is gzip (RFC 1952), which its first two bytes say
// and not its name.
//
// It yields bytes only as they are asked for, from buffers of fixed size: how much a damaged or
// hostile file could unpack to costs nothing. The gzip checksum and length are verified when the
// end of a member is reached. Owned and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace kumo {

class ByteSource {
 public:
  // Errors are those of FileSystem::OpenForReading (common/base/file.h): NotFound where there is no
  // such file, InvalidArgument where it is not a regular one.
  static Result<ByteSource> Open(const std::string& path);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Fills `out` from where the last call ended; returns how many bytes there were, fewer than asked
  // for only at the end of the content. DataLoss, naming the file and the offset, where a gzip
  // stream is damaged or cut off.
  Result<size_t> Read(std::span<uint8_t> out);

  const std::string& path() const;
  bool compressed() const;
  // Bytes of the file itself.
  int64_t file_size() const;
  // The most bytes of content that the file can hold: its size where it is plain, 1032 times that
  // where it is gzip (deflate codes at best 258 bytes in two bits).
  int64_t max_content_size() const;
  // Bytes of content read so far.
  int64_t offset() const;

 private:
  struct State;
  explicit ByteSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kumo
