// Writes gzip'd IDX files (format: readers/idx.h), whole or not at all.
//
// The file appears under its name only when Commit() has put all of it on the disk (AtomicFile);
// where the writer dies before, its temporary file is left, which the next attempt overwrites.
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

class IdxWriter {
 public:
  // `extents`: count, then the extents of one sample; one or three of them, each above 0.
  // `comment` goes into the gzip header (ReadGzipComment). `files` is borrowed for the writer's
  // life. Errors, here and below, are those of AtomicFile.
  static Result<IdxWriter> Create(FileSystem& files, const std::string& path,
                                  const std::vector<int64_t>& extents, const std::string& comment);

  IdxWriter(IdxWriter&&) noexcept;
  IdxWriter& operator=(IdxWriter&&) noexcept;
  // Removes the unfinished file.
  ~IdxWriter();

  // The next samples' bytes.
  Status Append(std::span<const uint8_t> bytes);
  // Requires that exactly the promised bytes were appended. Flushes the file to the disk and gives
  // it its name; nothing may be appended afterwards.
  Status Commit();

 private:
  struct State;
  explicit IdxWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The comment in a file's gzip header; "" where it has none, is no gzip file or does not exist.
std::string ReadGzipComment(FileSystem& files, const std::string& path);

}  // namespace kumo
