// A zip file being written whose members are stored as they are (PKWARE's APPNOTE.TXT 6.3, without
// its 64-bit records).
//
// libarchive reads zip files here; its writer, linked statically, would bring libxml2 for the
// formats that are not used.
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

class StoredZip {
 public:
  // Borrowed for life.
  explicit StoredZip(AtomicFile* file) : file_(*file) {}

  // A member of these parts, one behind the other. InvalidArgument where the file would become
  // longer than 4 GiB, which such records cannot say.
  Status Add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  // The directory at the end. To be called once, last.
  Status Finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint32_t bytes = 0;
    uint32_t offset = 0;
  };
  // What stands in a member's own header and in the directory.
  static std::string CommonFields(const Member& member);
  Status Append(std::span<const std::byte> bytes);

  AtomicFile& file_;
  std::vector<Member> members_;
  uint64_t at_ = 0;  // bytes written
};

}  // namespace kumo
