#include "common/base/process/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace kumo {

namespace {

constexpr char kFile[] = ".lock";

// The kernel lets go when the process ends, however it ends.
Status Lock(int fd, const std::string& directory) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return OkStatus();
  return Unavailable("another job is running with output.directory " + directory +
                     ": stop it, or choose another directory");
}

// In place: others may hold the file open.
Status WriteToken(int fd, const std::string& path, uint64_t token) {
  char text[32];
  const int length = std::snprintf(text, sizeof(text), "%016" PRIx64 "\n", token);
  const bool written =
      pwrite(fd, text, length, 0) == length && ftruncate(fd, length) == 0 && fsync(fd) == 0;
  if (written) return OkStatus();
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  const std::string message = path + ": " + std::strerror(errno);
  return full ? ResourceExhausted(message) : DataLoss(message);
}

}  // namespace

Result<std::unique_ptr<OutputLock>> OutputLock::Take(const std::string& directory, uint64_t token) {
  const std::string path = JoinPath(directory, kFile);
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  std::unique_ptr<OutputLock> lock(new OutputLock(fd));
  KUMO_RETURN_IF_ERROR(Lock(fd, directory));
  if (token != 0) KUMO_RETURN_IF_ERROR(WriteToken(fd, path, token));
  return lock;
}

uint64_t OutputLock::ReadToken(FileSystem& files, const std::string& directory) {
  constexpr uint64_t kLongest = 32;
  const Result<std::string> text = ReadWholeFile(files, JoinPath(directory, kFile), kLongest);
  if (!text.ok()) return 0;
  uint64_t token = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), token, 16);
  const bool whole =
      parsed.ec == std::errc() && std::string_view(parsed.ptr, text->data() + text->size()) == "\n";
  return whole ? token : 0;
}

Status OutputLock::Probe(const std::string& directory) {
  const std::string path = JoinPath(directory, kFile);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return OkStatus();
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  const Status locked = Lock(fd, directory);
  close(fd);
  return locked;
}

OutputLock::~OutputLock() { close(fd_); }

}  // namespace kumo
