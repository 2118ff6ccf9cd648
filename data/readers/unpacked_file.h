// Unpacked file: the content of a packed file, unpacked once per machine into a cache folder of the
// user and mapped by every process, so that many workers share its memory, and only the first
// spends the time.
//
//   <folder>/<name>.<16 hex digits: hash of the whole path and the part>: content, then one line of
//   text
//
// The line identifies the packed file: size, inode, change time, a hash of the part, and path. If
// the packed file has changed, it is unpacked again and the old content replaced; processes that
// have it mapped keep it. The unpacking process holds the folder's lock, so the others wait instead
// of doing the same work; it also removes the contents of packed files that no longer exist.
//
// Only files that belong to the user count. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/mapped_file.h"
#include "common/base/status.h"

namespace kumo {

struct PackedFile {
  std::string path;
  int64_t content_size = 0;  // bytes
  // Identifies the unpacked part of the file and its conversion, in any text: another text means
  // another content. "": the whole content, unconverted.
  std::string part = "";
};

// Passes on the whole content in pieces; ends with the first error of `sink` or its own.
using Sink = std::function<Status(std::span<const uint8_t> piece)>;
using Unpack = std::function<Status(const Sink& sink)>;

// Maps a file that begins with the content. An error tells why it cannot be kept in `folder`, or
// comes from `unpack`; the caller then needs private memory.
Result<std::shared_ptr<const MappedFile>> MapUnpacked(const std::string& folder,
                                                      const PackedFile& packed,
                                                      const Unpack& unpack);

// True if MapUnpacked would map it: it exists, or the folder is writable.
bool CanMapUnpacked(const std::string& folder, const PackedFile& packed);

}  // namespace kumo
