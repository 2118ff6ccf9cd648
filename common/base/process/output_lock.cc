#include "common/base/process/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/base/text.h"

namespace kumo {

namespace {

constexpr char kFile[] = ".lock";

// Probe holds the lock for a moment only.
constexpr int kTries = 20;
constexpr useconds_t kBetweenTriesUs = 10'000;

// kind: LOCK_EX or LOCK_SH. The kernel releases the lock when the process ends, however it ends.
Status Lock(int fd, int kind, int tries, const std::string& directory) {
  for (; flock(fd, kind | LOCK_NB) != 0; usleep(kBetweenTriesUs)) {
    if (errno != EWOULDBLOCK) {
      return FailedPrecondition(JoinPath(directory, kFile) +
                                " cannot be locked: " + std::strerror(errno));
    }
    if (--tries > 0) continue;
    return Unavailable("another job is running with output.directory " + directory +
                       ": stop it, or choose another directory");
  }
  return OkStatus();
}

// Written in place, because other processes may have the file open.
Status WriteHolder(int fd, const std::string& path, const LockHolder& holder) {
  const std::string text =
      HexDigits(holder.token) + "\n" + (holder.address.empty() ? "" : holder.address + "\n");
  const auto length = static_cast<ssize_t>(text.size());
  const bool written =
      pwrite(fd, text.data(), length, 0) == length && ftruncate(fd, length) == 0 && fsync(fd) == 0;
  if (written) return OkStatus();
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  const std::string message = path + ": " + std::strerror(errno);
  return full ? ResourceExhausted(message) : DataLoss(message);
}

}  // namespace

Result<std::unique_ptr<OutputLock>> OutputLock::Take(const std::string& directory,
                                                     const LockHolder& holder) {
  const std::string path = JoinPath(directory, kFile);
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  std::unique_ptr<OutputLock> lock(new OutputLock(fd));
  KUMO_RETURN_IF_ERROR(Lock(fd, LOCK_EX, kTries, directory));
  if (holder.token != 0) KUMO_RETURN_IF_ERROR(WriteHolder(fd, path, holder));
  return lock;
}

LockHolder OutputLock::ReadHolder(FileSystem& files, const std::string& directory) {
  constexpr uint64_t kLongest = 4096;
  const Result<std::string> text = ReadWholeFile(files, JoinPath(directory, kFile), kLongest);
  if (!text.ok()) return {};
  LockHolder holder;
  std::string_view rest = *text;
  const std::optional<uint64_t> token = TakeNumber<uint64_t>(&rest, 16);
  if (!token || !rest.starts_with('\n')) return {};
  holder.token = *token;
  if (rest.size() == 1) return holder;
  const std::string_view address = rest.substr(1, rest.size() - 2);
  if (!rest.ends_with('\n') || address.empty() || address.find('\n') != address.npos) return {};
  holder.address = address;
  return holder;
}

Status OutputLock::Probe(const std::string& directory) {
  const std::string path = JoinPath(directory, kFile);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return OkStatus();
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  const Status locked = Lock(fd, LOCK_SH, 1, directory);
  close(fd);
  return locked;
}

OutputLock::~OutputLock() { close(fd_); }

}  // namespace kumo
