// A disk for tests, in memory. It keeps apart what a program sees and what would still be there
// after a power cut, and fails where the test wants it to.
//
// Contents become durable with WritableFile::Sync, names with SyncDirectory (POSIX promises no
// more). A file needs a folder. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/file.h"

namespace kumo {

class MemoryFileSystem : public FileSystem {
 public:
  // From operation number n (counted from 0) on, everything that changes the disk fails with
  // ResourceExhausted; an Append then writes half of its bytes before it fails.
  void FailFrom(int n) { fail_from_ = n; }
  // The same for operation number n alone.
  void FailOnly(int n) { fail_only_ = n; }
  // Operations so far that changed the disk or tried to.
  int operations() const { return operations_; }
  // The power goes, and comes back. With seed 0 what was not made durable is gone; with another
  // one, of each name and each file's contents either the durable or the last state survives, drawn
  // by lot. Failures end.
  void PowerCut(uint64_t seed = 0);

  // A file's bytes; nullptr when there is none. Borrowed until the next call.
  std::string* Contents(const std::string& path);
  // A file and its folders, durable at once.
  void Put(const std::string& path, std::string bytes);

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenForAppending(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveFile(const std::string& path) override;
  Result<bool> Has(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Status RemoveEmptyDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Result<uint64_t> FreeBytes(const std::string&) override { return uint64_t{1} << 40; }
  Status CheckWritable(const std::string&) override { return OkStatus(); }

  struct Node {
    std::string bytes;
    std::string durable_bytes;
  };
  // An error when this operation is to fail.
  Status Operation(const std::string& what);

 private:
  using Names = std::map<std::string, std::shared_ptr<Node>>;  // a folder's node is null

  // NotFound unless the folder of `path` is there.
  Status CheckFolderOf(const std::string& path) const;

  Names names_;
  Names durable_names_;
  int operations_ = 0;
  int fail_from_ = -1;
  int fail_only_ = -1;
};

// A disk that cannot read some files for the moment.
class BusyFileSystem : public MemoryFileSystem {
 public:
  std::string busy;  // a part of their paths
  StatusCode code = StatusCode::kUnavailable;
  bool unseen = false;  // it cannot even say whether they are there
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    if (IsBusy(path)) return Status(code, "try again: " + path);
    return MemoryFileSystem::OpenForReading(path);
  }
  Result<bool> Has(const std::string& path) override {
    if (unseen && IsBusy(path)) return Status(code, "try again: " + path);
    return MemoryFileSystem::Has(path);
  }

 private:
  bool IsBusy(const std::string& path) const {
    return !busy.empty() && path.find(busy) != std::string::npos;
  }
};

}  // namespace kumo
