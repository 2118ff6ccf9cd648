#include "common/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/text.h"

namespace kumo {

namespace {

StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    case EIO:  // also of a network's disk that does not answer: nothing is known to be lost
    case EAGAIN:
    case EBUSY:
    case ESTALE:
    case ETIMEDOUT:
      return StatusCode::kUnavailable;
    default:  // EACCES, EPERM, EROFS, ENOTDIR, EISDIR, ENAMETOOLONG, ...: a retry cannot help
      return StatusCode::kFailedPrecondition;
  }
}

// "cannot open /a/b for reading: No such file or directory".
Status ErrnoStatus(std::string_view what, const std::string& path, std::string_view how = "") {
  const int error = errno;
  std::string message = "cannot " + std::string(what) + " " + path + std::string(how) + ": " +
                        std::generic_category().message(error);
  rlimit limit{};
  if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    message += "; the limit of this process is " + std::to_string(limit.rlim_cur) + " (ulimit -n)";
  }
  return Status(CodeOfErrno(error), std::move(message));
}

// For people: "a FIFO". Requires that it is no regular file.
std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

Status NotRegular(const std::string& path, mode_t mode) {
  // Nobody shall remove /dev/null.
  const bool keep = S_ISDIR(mode) || S_ISCHR(mode) || S_ISBLK(mode);
  return FailedPrecondition(path + " is " + std::string(KindOf(mode)) + ", not a regular file; " +
                            (keep ? "" : "remove it, or ") + "choose another path");
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  int Close() { return ::close(Release()); }

 private:
  int fd_;
};

FileDescriptor OpenFile(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      // Linux moves at most 2 GiB at once.
      const size_t n = std::min(bytes.size(), size_t{1} << 30);
      const ssize_t written = ::write(fd_.get(), bytes.data(), n);
      if (written < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus("write to", path_);
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return OkStatus();
  }

  Status Sync() override {
    if (::fsync(fd_.get()) != 0) return ErrnoStatus("sync", path_);
    return OkStatus();
  }

  Status Close() override {
    if (fd_.Close() != 0) return ErrnoStatus("close", path_);
    return OkStatus();
  }

 private:
  const std::string path_;
  FileDescriptor fd_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(std::string path, FileDescriptor fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  uint64_t size() const override { return size_; }

  Status Read(uint64_t offset, std::span<std::byte> out) override {
    while (!out.empty()) {
      const size_t n = std::min(out.size(), size_t{1} << 30);
      const ssize_t got = ::pread(fd_.get(), out.data(), n, static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus("read", path_, " at byte " + std::to_string(offset));
      }
      if (got == 0) {
        return DataLoss("cannot read " + path_ + " at byte " + std::to_string(offset) +
                        ": the file ends " + std::to_string(out.size()) + " bytes too early");
      }
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return OkStatus();
  }

 private:
  const std::string path_;
  FileDescriptor fd_;
  const uint64_t size_;
};

Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path, int flags) {
  KUMO_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, O_WRONLY | O_CREAT | flags));
  return std::unique_ptr<WritableFile>(new PosixWritableFile(path, FileDescriptor(fd)));
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<std::unique_ptr<WritableFile>> PosixFileSystem::Create(const std::string& path) {
  return OpenForWriting(path, O_TRUNC);
}

Result<std::unique_ptr<WritableFile>> PosixFileSystem::OpenForAppending(const std::string& path) {
  return OpenForWriting(path, O_APPEND);
}

Result<std::unique_ptr<ReadableFile>> PosixFileSystem::OpenForReading(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer must not block before fstat shows that it is a
  // pipe.
  FileDescriptor fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  struct stat info;
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return ErrnoStatus("open", path);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("cannot read " + path + ": it is " + std::string(KindOf(info.st_mode)) +
                           ", not a regular file");
  }
  return std::unique_ptr<ReadableFile>(
      new PosixReadableFile(path, std::move(fd), static_cast<uint64_t>(info.st_size)));
}

Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  // A file must not take the place of a device such as /dev/null, or of a pipe, also behind a link.
  struct stat info;
  if (::stat(to.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return NotRegular(to, info.st_mode);
  }
  if (::rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus("rename", from, " to " + to);
  return OkStatus();
}

Status PosixFileSystem::RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return ErrnoStatus("remove", path);
  return OkStatus();
}

Result<bool> PosixFileSystem::Has(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoStatus("find", path);
}

Status PosixFileSystem::CreateDirectories(const std::string& path) {
  if (IsDirectory(path)) return OkStatus();
  const std::string above = DirectoryOf(path);
  if (above != path && above != ".") KUMO_RETURN_IF_ERROR(CreateDirectories(above));
  if (::mkdir(path.c_str(), 0755) != 0) {
    // Another process may have been faster; a file of that name is an error.
    if (errno == EEXIST && IsDirectory(path)) return OkStatus();
    return ErrnoStatus("create the folder", path);
  }
  return SyncDirectory(above);
}

Result<std::vector<std::string>> PosixFileSystem::List(const std::string& directory) {
  std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
  if (!stream) return ErrnoStatus("list", directory);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus("list", directory);
  std::sort(names.begin(), names.end());
  return names;
}

Status PosixFileSystem::RemoveEmptyDirectory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return ErrnoStatus("remove the folder", path);
  return OkStatus();
}

Status PosixFileSystem::SyncDirectory(const std::string& directory) {
  FileDescriptor fd = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (fd.get() < 0) return ErrnoStatus("open the folder", directory);
  // Some network file systems do not support fsync on folders (EINVAL) and need none.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus("sync the folder", directory);
  return OkStatus();
}

Result<uint64_t> PosixFileSystem::FreeBytes(const std::string& path) {
  struct statvfs info;
  if (::statvfs(NearestExisting(path).c_str(), &info) != 0) {
    return ErrnoStatus("ask for the free space of", path);
  }
  return uint64_t{info.f_bavail} * uint64_t{info.f_frsize};
}

Status PosixFileSystem::CheckWritable(const std::string& directory) {
  const std::string nearest = NearestExisting(directory);
  if (!IsDirectory(nearest)) {
    return FailedPrecondition("cannot write to " + directory + ": " + nearest + " is not a folder");
  }
  // Permissions alone do not tell: root bypasses them, and a mount may be read-only.
  std::string probe = JoinPath(nearest, ".kumo-probe-XXXXXX");
  FileDescriptor fd(::mkostemp(probe.data(), O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus("write to", directory);
  ::unlink(probe.c_str());
  const char byte = 0;
  if (::write(fd.get(), &byte, 1) != 1) return ErrnoStatus("write to", directory);
  return OkStatus();
}

Result<int> OpenRegularFile(const std::string& path, int flags) {
  struct stat info;
  // O_NONBLOCK has no effect on regular files.
  FileDescriptor fd = OpenFile(path, flags | O_NONBLOCK);
  if (fd.get() < 0) {
    const int error = errno;
    // A FIFO without a reader (ENXIO), a socket (ENXIO), a link that may not be followed (ELOOP).
    if ((error == ENXIO || error == ELOOP) && ::lstat(path.c_str(), &info) == 0 &&
        !S_ISREG(info.st_mode)) {
      return NotRegular(path, info.st_mode);
    }
    errno = error;
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    return ErrnoStatus("open", path, writes ? " for writing" : "");
  }
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("open", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path, info.st_mode);
  return fd.Release();
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

std::string DirectoryOf(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string NearestExisting(std::string path) {
  struct stat info;
  while (::stat(path.c_str(), &info) != 0 && errno == ENOENT && path != "." && path != "/") {
    path = DirectoryOf(path);
  }
  return path;
}

std::string CanonicalFolder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(absolute, error);
  return ((error ? absolute : canonical) / "").lexically_normal().string();
}

std::string NormalPath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path kept, rest;  // kept: up to the last ".." behind a link
  for (const fs::path& part : fs::path(path)) {
    const fs::path before = (rest / "").lexically_normal().parent_path();
    const bool behind_link = part == ".." && before.has_filename() && before.filename() != ".." &&
                             fs::is_symlink(kept / before, error);
    if (behind_link) {
      kept = kept / before / "..";
      rest.clear();
    } else {
      rest /= part;
    }
  }
  if (kept.empty()) return rest.lexically_normal().string();
  if (rest.empty()) return kept.string();
  const fs::path normal = rest.lexically_normal();
  return (normal == "." ? kept : kept / normal).string();
}

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path,
                                  uint64_t limit_bytes) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  if (file->size() > limit_bytes) {
    return ResourceExhausted(path + " has " + std::to_string(file->size()) + " bytes; at most " +
                             std::to_string(limit_bytes) +
                             " are allowed; name the right file, or a smaller one");
  }
  std::string text(file->size(), '\0');
  KUMO_RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span<char>(text))));
  return text;
}

std::string TemporaryName(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name) + "." + path.substr(name) + ".tmp";
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::Create(FileSystem& files, std::string path) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(TemporaryName(path)));
  return std::unique_ptr<AtomicFile>(new AtomicFile(files, std::move(path), std::move(file)));
}

AtomicFile::AtomicFile(FileSystem& files, std::string path, std::unique_ptr<WritableFile> file)
    : files_(files), path_(std::move(path)), file_(std::move(file)) {}

AtomicFile::~AtomicFile() {
  if (committed_) return;
  file_.reset();
  // Best effort: the earlier error is the one to report.
  (void)files_.RemoveFile(TemporaryName(path_));
}

Status AtomicFile::Commit() {
  CHECK(!committed_);
  // Contents before name: after a power failure the name never shows an incomplete file.
  KUMO_RETURN_IF_ERROR(file_->Sync());
  KUMO_RETURN_IF_ERROR(file_->Close());
  KUMO_RETURN_IF_ERROR(files_.Rename(TemporaryName(path_), path_));
  committed_ = true;
  return files_.SyncDirectory(DirectoryOf(path_));
}

Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::span<const std::byte>> parts) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(files, path));
  for (const std::span<const std::byte>& part : parts) KUMO_RETURN_IF_ERROR(file->Append(part));
  return file->Commit();
}

Status WriteFileAtomically(FileSystem& files, const std::string& path, std::string_view text) {
  const std::span<const std::byte> parts[] = {AsBytes(text)};
  return WriteFileAtomically(files, path, parts);
}

Result<std::string> ReadTextFile(const std::string& path, uint64_t most_mib) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return NotFound("is a directory");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument("is a pipe or a device, not a file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(std::generic_category().message(errno));
  std::string text;
  char buffer[1 << 14];
  while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > most_mib << 20) {
      return InvalidArgument("has more than " + std::to_string(most_mib) + " MiB");
    }
  }
  if (file.bad()) return Unavailable("read error");
  if (const size_t zero = text.find('\0'); zero != std::string::npos) {
    return InvalidArgument("is not UTF-8 text: byte " + std::to_string(zero) + " is 0");
  }
  text.erase(0, text.size() - WithoutByteOrderMark(text).size());
  return text;
}

}  // namespace kumo
