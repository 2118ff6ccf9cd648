#include "data/readers/unpacked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/base/file.h"
#include "common/base/fnv.h"
#include "common/base/text.h"

namespace kumo {
namespace {

// Lock of the folder; the kernel releases it when the process ends, however it ends.
class FolderLock {
 public:
  static Result<std::unique_ptr<FolderLock>> Take(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return Failed(folder);
    std::unique_ptr<FolderLock> lock(new FolderLock(fd));
    while (::flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return Failed(folder);
    }
    return lock;
  }
  ~FolderLock() { ::close(fd_); }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  static Status Failed(const std::string& folder) {
    return Unavailable("cannot lock " + folder + ": " + std::generic_category().message(errno) +
                       "; set data.cache to a folder on another file system");
  }

  const int fd_;
};

// Resolves links if the file exists.
std::string WholePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  return error ? path : whole.string();
}

std::string KeptAs(const std::string& folder, const PackedFile& packed) {
  Fnv1a hash;
  hash.Add(WholePath(packed.path));
  hash.Add(packed.part);
  return JoinPath(folder, std::filesystem::path(packed.path).filename().string() + "." +
                              HexDigits(hash.value()));
}

constexpr std::string_view kLineStart = "\nkumo unpacked 2, bytes inode changed part path: ";

// Identifies the state of the packed file. Its change time covers content, name and permissions,
// and cannot be set.
Result<std::string> LineAbout(const PackedFile& packed) {
  const std::string& path = packed.path;
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return NotFound(path + ": no such file");
  char numbers[120];
  std::snprintf(numbers, sizeof(numbers), "%jd %ju %jd.%09ld ", static_cast<intmax_t>(file.st_size),
                static_cast<uintmax_t>(file.st_ino), static_cast<intmax_t>(file.st_ctim.tv_sec),
                file.st_ctim.tv_nsec);
  Fnv1a part;
  part.Add(packed.part);
  return std::string(kLineStart) + numbers + HexDigits(part.value()) + " " + WholePath(path) + "\n";
}

// The path in the last line of `kept`; "" if there is no such line.
std::string PathIn(const MappedFile& kept) {
  const std::span<const uint8_t> tail =
      kept.bytes().last(std::min<size_t>(kept.bytes().size(), PATH_MAX + 200));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const size_t line = text.rfind(kLineStart);
  const size_t path = line == text.npos ? text.npos : text.find('/', line + kLineStart.size());
  return path == text.npos || !text.ends_with('\n')
             ? ""
             : std::string(text.substr(path, text.size() - path - 1));
}

// If others can write there, the content may be forged.
bool IsOurs(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 && file.st_uid == ::geteuid() &&
         (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// None if there is no content, or the content of another file.
std::shared_ptr<const MappedFile> Kept(const std::string& name, int64_t content_size,
                                       const std::string& line) {
  if (!IsOurs(name)) return nullptr;
  const auto mapped = MappedFile::Open(name);
  if (!mapped.ok()) return nullptr;
  const std::span<const uint8_t> bytes = (*mapped)->bytes();
  if (bytes.size() != static_cast<uint64_t>(content_size) + line.size()) return nullptr;
  const bool same = std::equal(line.begin(), line.end(), bytes.end() - std::ssize(line));
  return same ? *mapped : nullptr;
}

// Removes the contents of packed files that no longer exist, and what processes that were killed
// while they unpacked have left. Requires the folder's lock, which all have who unpack.
void RemoveOrphans(const std::string& folder) {
  PosixFileSystem files;
  const Result<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string file = JoinPath(folder, name);
    if (!IsOurs(file)) continue;
    if (name.starts_with('.') && name.ends_with(".tmp")) (void)files.RemoveFile(file);
    const auto mapped = MappedFile::Open(file);
    const std::string packed = mapped.ok() ? PathIn(**mapped) : "";
    if (!packed.empty() && !files.Exists(packed)) (void)files.RemoveFile(file);
  }
}

bool HasRoom(const std::string& folder, const PackedFile& packed) {
  const Result<uint64_t> free = PosixFileSystem().FreeBytes(folder);
  return free.ok() && *free > static_cast<uint64_t>(packed.content_size);
}

Status Keep(const std::string& name, const std::string& line, const Unpack& unpack) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(files, name));
  KUMO_RETURN_IF_ERROR(
      unpack([&](std::span<const uint8_t> piece) { return file->Append(std::as_bytes(piece)); }));
  KUMO_RETURN_IF_ERROR(file->Append(AsBytes(line)));
  return file->Commit();
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MapUnpacked(const std::string& folder,
                                                      const PackedFile& packed,
                                                      const Unpack& unpack) {
  const std::string name = KeptAs(folder, packed);
  // Taken before reading: if the file changes meanwhile, the next process unpacks it again.
  KUMO_ASSIGN_OR_RETURN(const std::string line, LineAbout(packed));
  if (auto kept = Kept(name, packed.content_size, line)) return kept;
  KUMO_RETURN_IF_ERROR(PosixFileSystem().CreateDirectories(folder));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock, FolderLock::Take(folder));
  if (auto kept = Kept(name, packed.content_size, line)) return kept;  // made while we waited
  RemoveOrphans(folder);
  if (!HasRoom(folder, packed)) {  // each process would find that out at the end
    return ResourceExhausted(folder + ": its disk has no room for the unpacked content of " +
                             packed.path);
  }
  KUMO_RETURN_IF_ERROR(Keep(name, line, unpack));
  if (auto kept = Kept(name, packed.content_size, line)) return kept;
  return DataLoss(name + ": the content differs from the written one; check the disk");
}

bool CanMapUnpacked(const std::string& folder, const PackedFile& packed) {
  const Result<std::string> line = LineAbout(packed);
  if (!line.ok()) return false;
  if (Kept(KeptAs(folder, packed), packed.content_size, *line)) return true;
  return PosixFileSystem().CheckWritable(folder).ok() && HasRoom(folder, packed);
}

}  // namespace kumo
