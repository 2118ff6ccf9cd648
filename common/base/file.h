// The disk, handed in: whoever reads or writes files does it through a FileSystem, so that tests
// can fill the disk, tear a write or lose what was not synced.
//
// Errors name the path and the system's words for what happened. Codes: NotFound (no such file),
// ResourceExhausted (disk or quota full, too many open files), FailedPrecondition (no permission,
// read-only, a file where a folder should be), DataLoss (the disk could not give or keep the
// bytes).
//
// A FileSystem is thread-safe; one open file belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// A file being written, from its start or its end onwards. Not buffered.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes; the bytes may never reach the disk
  // Writes all of `bytes`. After an error an unknown part of them is in the file.
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  // Returns when the bytes are on the disk. After an error they may never get there: start again.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// A file being read.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // The file's length in bytes when it was opened.
  virtual uint64_t size() const = 0;
  // Fills all of `out` from `offset` on, or fails: DataLoss when the file ends before.
  virtual Status Read(uint64_t offset, std::span<std::byte> out) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Writes to a new file, in place of an existing one.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Writes behind the end of a file, which is created if need be.
  virtual Result<std::unique_ptr<WritableFile>> OpenForAppending(const std::string& path) = 0;
  // InvalidArgument for what is not a regular file.
  virtual Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;
  // Replaces `to`, if there is one, in one step.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;

  virtual bool Exists(const std::string& path) = 0;
  // The folder and those above it; fine when they exist. They are durable when this returns.
  virtual Status CreateDirectories(const std::string& path) = 0;
  // Names in a folder, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual Status RemoveEmptyDirectory(const std::string& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual Status SyncDirectory(const std::string& directory) = 0;

  // Bytes that may still be written to the disk that holds `path`, or would if it existed.
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
  // Whether files can be created in `directory` or, when it does not exist, whether it could be
  // created: tries it with a short-lived file in the nearest folder that exists.
  virtual Status CheckWritable(const std::string& directory) = 0;
};

// The machine's own file system. Has no state.
class PosixFileSystem : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenForAppending(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RemoveFile(const std::string& path) override;
  bool Exists(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Status RemoveEmptyDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Status CheckWritable(const std::string& directory) override;
};

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// "a/b" + "c" -> "a/b/c".
std::string JoinPath(std::string_view directory, std::string_view name);
// The folder that holds `path`: "." for a bare name.
std::string DirectoryOf(std::string_view path);

// A whole file. ResourceExhausted when it is longer than limit_bytes: nothing is then allocated.
Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t limit_bytes);

// A file that appears under its name complete and durable, or not at all: written to
// TemporaryName(path), synced, renamed, and the folder synced. Without Commit the temporary file is
// removed.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> Create(FileSystem& files, std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status Append(std::span<const std::byte> bytes) { return file_->Append(bytes); }
  // To be called once at most.
  Status Commit();

 private:
  AtomicFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> file);

  FileSystem& files_;  // borrowed for life
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  bool committed_ = false;
};

// Where an AtomicFile is until it is committed: ".<name>.tmp" in the same folder.
std::string TemporaryName(const std::string& path);

// An AtomicFile with `parts`, one behind the other.
Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::span<const std::byte>> parts);
Status WriteFileAtomically(FileSystem& files, const std::string& path, std::string_view text);

}  // namespace kumo
