// Writer of zip files with uncompressed members (PKWARE's APPNOTE.TXT 6.3, without 64-bit records).
//
// libarchive reads zip files in Kumo, but its statically linked writer would pull in libxml2 for
// unused formats.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

class StoredZip {
 public:
  // file must outlive this object.
  explicit StoredZip(AtomicFile* file) : file_(*file) {}

  // Adds a member with the concatenated parts. InvalidArgument if the file would exceed 4 GiB, the
  // limit of such records.
  Status Add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  // Writes the directory. Call it once, last.
  Status Finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint32_t bytes = 0;
    uint32_t offset = 0;
  };
  // The fields that the member's header and the directory share.
  static std::string CommonFields(const Member& member);
  Status Append(std::span<const std::byte> bytes);

  AtomicFile& file_;
  std::vector<Member> members_;
  uint64_t at_ = 0;  // bytes written
};

}  // namespace kumo
