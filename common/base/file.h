// File system interface, passed to everything that reads or writes files, so that tests can fill
// the disk, tear a write or lose unsynced data.
//
// Error messages name the path and the system's reason. Codes: NotFound (no such file),
// ResourceExhausted (disk or quota full, too many open files), FailedPrecondition (no permission,
// read-only, a file in place of a folder), DataLoss (the disk could not read or keep the bytes).
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

// A file open for writing, either new or at its end. Unbuffered.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes; unsynced bytes may be lost
  // Writes all of `bytes`. After an error an unknown part of them is in the file.
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  // Returns when the bytes are durable. After an error, write the file anew.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// A file open for reading.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // The file's length in bytes when it was opened.
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`, or fails; DataLoss if the file is too short.
  virtual Status Read(uint64_t offset, std::span<std::byte> out) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a file for writing, replacing an existing one. FailedPrecondition if a FIFO or another
  // kind of file is in its place; likewise below.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens a file for writing at its end, creating it if necessary.
  virtual Result<std::unique_ptr<WritableFile>> OpenForAppending(const std::string& path) = 0;
  // InvalidArgument if the path is no regular file, which is named.
  virtual Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;
  // Atomically replaces `to` if it exists.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;

  // Whether a file or folder of this name is there. An error if that cannot be said now, as on a
  // network file system that does not answer.
  virtual Result<bool> Has(const std::string& path) = 0;
  // Has(path), an error counting as no: where nothing is removed or forgotten for it.
  bool Exists(const std::string& path) {
    const Result<bool> has = Has(path);
    return has.ok() && *has;
  }
  // Creates the folder and its parents, and makes them durable; ok if they exist.
  virtual Status CreateDirectories(const std::string& path) = 0;
  // Names in a folder, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual Status RemoveEmptyDirectory(const std::string& path) = 0;
  // Makes creations, renames and removals in the folder durable.
  virtual Status SyncDirectory(const std::string& directory) = 0;

  // Free bytes on the disk that holds, or would hold, `path`.
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
  // Checks that files can be created in `directory`, or that it can be created, by creating a
  // temporary file in the nearest existing folder.
  virtual Status CheckWritable(const std::string& directory) = 0;
};

// The machine's file system. Stateless.
class PosixFileSystem : public FileSystem {
 public:
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
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Status CheckWritable(const std::string& directory) override;
};

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Opens a regular file with the flags of open(2), for an owner outside a FileSystem, and never
// waits. FailedPrecondition for another kind of file, which is named: a program that opens a FIFO
// waits for its other end, and a device has no end.
Result<int> OpenRegularFile(const std::string& path, int flags);

// "a/b" + "c" -> "a/b/c".
std::string JoinPath(std::string_view directory, std::string_view name);
// The folder that holds `path`: "." for a bare name.
std::string DirectoryOf(std::string_view path);
// `path`, or its nearest ancestor that exists.
std::string NearestExisting(std::string path);

// `path` without ".", doubled '/' and "name/..", which stays if `name` is a symbolic link: the
// system goes to the parent of the link's target.
std::string NormalPath(const std::string& path);

// The absolute path of a folder itself, whatever links `path` goes through, with '/' at its end.
// Parts of the path that do not exist stay as they are written.
std::string CanonicalFolder(const std::string& path);

// Reads a whole file. ResourceExhausted, without allocation, if it exceeds limit_bytes.
Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t limit_bytes);

// Atomic file: appears under its name complete and durable, or not at all. It is written to
// TemporaryName(path), synced and renamed, and the folder is synced. Without Commit the temporary
// file is removed.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> Create(FileSystem& files, std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status Append(std::span<const std::byte> bytes) { return file_->Append(bytes); }
  // Call at most once.
  Status Commit();

 private:
  AtomicFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> file);

  FileSystem& files_;  // borrowed for life
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  bool committed_ = false;
};

// The path of an AtomicFile before its commit: ".<name>.tmp" in the same folder.
std::string TemporaryName(const std::string& path);

// Writes an AtomicFile with the concatenated `parts`.
Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::span<const std::byte>> parts);
Status WriteFileAtomically(FileSystem& files, const std::string& path, std::string_view text);

// Reads a text that a person wrote (experiment, network) without its byte order mark. Error
// messages do not contain the path: NotFound if the file cannot be opened or is a folder;
// InvalidArgument for a pipe or device, for more than `most_mib` MiB (only so much is read), and
// for text with a zero byte, because a name with a zero byte could address another file.
Result<std::string> ReadTextFile(const std::string& path, uint64_t most_mib);

}  // namespace kumo
