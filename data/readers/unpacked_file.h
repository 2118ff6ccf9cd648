// The content of a packed file, unpacked once on a machine. It is kept in a folder of the user's,
// and every process maps it: many workers take its memory once, and only the first one the time.
//
//   <folder>/<name>.<16 hex digits: hash of the whole path and the part>: content, then one line of
//   text
//
// That line tells which file it was unpacked from: size, inode, when it was last changed, a hash of
// the part, and its path. Where it is another by now, it is unpacked anew and the former file
// replaced; who has that mapped keeps it. Whoever unpacks holds the folder's lock, so that all
// others wait for it instead of doing the same work, and removes what was unpacked from files that
// are gone.
//
// What is in the folder counts only where it belongs to the user. Thread-safe.
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
  // What of the file the content is, and how it was made of it, in any words: other words, another
  // content. "": all of it, as it is unpacked.
  std::string part = "";
};

// Passes the whole content on, piece by piece; ends with the first error of `sink` or its own.
using Sink = std::function<Status(std::span<const uint8_t> piece)>;
using Unpack = std::function<Status(const Sink& sink)>;

// Its bytes() begin with the content. An error says why it cannot be kept in `folder`, or is that
// of `unpack`: then the caller needs memory of its own.
Result<std::shared_ptr<const MappedFile>> MapUnpacked(const std::string& folder,
                                                      const PackedFile& packed,
                                                      const Unpack& unpack);

// Whether MapUnpacked would map it: it is there, or the folder can be written to.
bool CanMapUnpacked(const std::string& folder, const PackedFile& packed);

}  // namespace kumo
