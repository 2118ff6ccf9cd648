// Archive walk: the entries of a tar (plain or gzip'd) or zip archive in their order, with the
// content or the location of each file.
//
// Names are bytes, independent of the process's locale: UTF-8 if the archive marks them as UTF-8,
// otherwise as they are stored. In a zip, names that are marked as UTF-8 are brought to Unicode's
// normalisation form C. An entry whose name cannot be read, or is longer than a path, is an error.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

struct archive;
struct archive_entry;

namespace kumo {

inline constexpr int64_t kMaxImageFileBytes = 256 << 20;

struct ArchiveEntry {
  enum class Kind {
    kFile,
    kFolder,
    kLink,   // hard or symbolic
    kOther,  // a pipe or a device
  };
  Kind kind = Kind::kFile;
  std::string name;      // without "./" at its start and '/' at its end
  std::string target{};  // of kLink: a name in the archive; "" if it leads out of the archive
};

// Location of a file in an archive, for reading it on its own.
struct ArchivePlace {
  static constexpr int64_t kMissing = -1;

  int64_t offset = 0;     // in the archive's file
  int64_t size = 0;       // bytes, once unpacked; kMissing: the archive lacks the file
  bool deflated = false;  // RFC 1951

  bool missing() const { return size == kMissing; }
};

class ArchiveWalk {
 public:
  // DataLoss if the file is no archive or is damaged.
  static Result<ArchiveWalk> Open(const std::string& path);

  // The next entry; none at the end. DataLoss if the archive is damaged or truncated;
  // InvalidArgument if a name cannot be read or has more than 4095 bytes.
  Result<std::optional<ArchiveEntry>> Next();

  // The content of the file that Next() returned, valid until the next call. InvalidArgument if it
  // exceeds kMaxImageFileBytes; any other error is the archive's.
  Result<std::span<const uint8_t>> Content();

  // The next bytes of the file that Next() returned, instead of Content: fills `out`; returns the
  // number of bytes, which is smaller only at the file's end. DataLoss if the archive is damaged.
  Result<size_t> Read(std::span<uint8_t> out);

  // The location of the file that Next() returned. FailedPrecondition if the archive must be
  // unpacked from its start (tar in gzip; zip methods other than deflate, or encrypted);
  // InvalidArgument if the file exceeds kMaxImageFileBytes.
  Result<ArchivePlace> Place();

 private:
  struct Free {
    void operator()(archive* handle) const;
  };

  ArchiveWalk(std::string path, bool zip);
  Status Damaged() const;
  Result<std::string> Name() const;
  std::string Target() const;
  Result<std::optional<ArchiveEntry>> CheckEnd() const;

  std::string path_;
  bool zip_;
  std::unique_ptr<archive, Free> handle_;
  archive_entry* entry_ = nullptr;  // of the handle
  int64_t entries_ = 0;             // seen so far
  std::string name_;                // of the last entry
  std::vector<uint8_t> content_;
};

}  // namespace kumo
