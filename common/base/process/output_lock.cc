#include "common/base/process/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/file.h"

namespace kumo {

namespace {

constexpr char kFile[] = ".lock";

// The kernel lets go when the process ends, however it ends.
Status Lock(int fd, const std::string& directory) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return OkStatus();
  return Unavailable("another job is running with output.directory " + directory +
                     ": stop it, or choose another directory");
}

}  // namespace

Result<std::unique_ptr<OutputLock>> OutputLock::Take(const std::string& directory) {
  const std::string path = JoinPath(directory, kFile);
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  const Status locked = Lock(fd, directory);
  if (locked.ok()) return std::unique_ptr<OutputLock>(new OutputLock(fd));
  close(fd);
  return locked;
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
