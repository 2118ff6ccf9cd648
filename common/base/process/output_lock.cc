#include "common/base/process/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/base/text.h"

namespace kumo {

namespace {

constexpr char kFile[] = ".lock";
// Last line of the file if its holder has no kernel lock.
constexpr char kUnlocked[] = "unlocked\n";

// Probe and CheckFree hold the lock for a moment only.
constexpr int kTries = 20;
constexpr useconds_t kBetweenTriesUs = 10'000;

Status CannotLock(const std::string& path, int error) {
  const bool has_none =
      error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
  return FailedPrecondition(
      path + " cannot be locked: " + std::strerror(error) +
      (has_none ? "; this file system has no locks: choose a folder on another one; or, for "
                  "output.directory, set output.lock=none if no other job uses it"
                : ""));
}

// Checks, with a temporary file in the nearest existing folder, that files can be locked there.
// Folders that cannot be written are reported by others.
Status TryLockIn(const std::string& directory) {
  std::string path = JoinPath(NearestExisting(directory), ".kumo-lock-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return OkStatus();
  unlink(path.c_str());
  const int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  close(fd);
  return error == 0 ? OkStatus() : CannotLock(JoinPath(directory, kFile), error);
}

// kind: LOCK_EX or LOCK_SH. The kernel releases the lock when the process ends, however it ends.
Status Lock(int fd, int kind, int tries, const std::string& directory) {
  for (; flock(fd, kind | LOCK_NB) != 0; usleep(kBetweenTriesUs)) {
    if (errno != EWOULDBLOCK) return CannotLock(JoinPath(directory, kFile), errno);
    if (--tries > 0) continue;
    return Unavailable("another job is running with output.directory " + directory +
                       ": stop it, or choose another directory");
  }
  return OkStatus();
}

// Written in place, because other processes may have the file open.
Status WriteHolder(int fd, const std::string& path, const LockHolder& holder) {
  const std::string text = HexDigits(holder.token) + "\n" +
                           (holder.address.empty() ? "" : holder.address + "\n") +
                           (holder.unlocked ? kUnlocked : "");
  const auto length = static_cast<ssize_t>(text.size());
  errno = ENOSPC;  // for a short write, which sets none
  const bool written =
      pwrite(fd, text.data(), length, 0) == length && ftruncate(fd, length) == 0 && fsync(fd) == 0;
  if (written) return OkStatus();
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  const std::string message = path + ": " + std::strerror(errno);
  return full ? ResourceExhausted(message) : DataLoss(message);
}

}  // namespace

// O_NOFOLLOW: the file is written in place, and a link may name a file of the user's.
Result<std::unique_ptr<OutputLock>> OutputLock::Take(const std::string& directory,
                                                     const LockHolder& holder, FileLock lock) {
  const std::string path = JoinPath(directory, kFile);
  KUMO_ASSIGN_OR_RETURN(const int fd, OpenRegularFile(path, O_CREAT | O_RDWR | O_NOFOLLOW));
  std::unique_ptr<OutputLock> taken(new OutputLock(fd));
  if (lock == FileLock::kKernel) KUMO_RETURN_IF_ERROR(Lock(fd, LOCK_EX, kTries, directory));
  if (holder.token == 0) return taken;
  LockHolder written = holder;
  written.unlocked = lock == FileLock::kNone;
  KUMO_RETURN_IF_ERROR(WriteHolder(fd, path, written));
  if (written.unlocked) taken->removed_ = path;
  return taken;
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
  holder.unlocked = rest.ends_with(std::string("\n") + kUnlocked);
  if (holder.unlocked) rest.remove_suffix(std::string_view(kUnlocked).size());
  if (rest.size() == 1) return holder;
  const std::string_view address = rest.substr(1, rest.size() - 2);
  if (!rest.ends_with('\n') || address.empty() || address.find('\n') != address.npos) return {};
  holder.address = address;
  return holder;
}

Status OutputLock::Probe(const std::string& directory) {
  const Result<int> fd = OpenRegularFile(JoinPath(directory, kFile), O_RDONLY | O_NOFOLLOW);
  if (!fd.ok()) {
    return fd.status().code() == StatusCode::kNotFound ? OkStatus() : fd.status();
  }
  const Status free = Lock(*fd, LOCK_SH, 1, directory);
  close(*fd);
  return free;
}

Status OutputLock::CheckFree(const std::string& directory, FileLock lock) {
  // As Take opens and locks it.
  const Result<int> fd = OpenRegularFile(JoinPath(directory, kFile), O_RDWR | O_NOFOLLOW);
  const bool locks = lock == FileLock::kKernel;
  if (!fd.ok()) {
    if (fd.status().code() != StatusCode::kNotFound) return fd.status();
    return locks ? TryLockIn(directory) : OkStatus();
  }
  const Status free = locks ? Lock(*fd, LOCK_EX, 1, directory) : OkStatus();
  close(*fd);
  return free;
}

OutputLock::~OutputLock() {
  if (!removed_.empty()) unlink(removed_.c_str());
  close(fd_);
}

}  // namespace kumo
