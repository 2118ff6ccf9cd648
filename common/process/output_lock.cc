#include "common/process/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/file.h"

namespace kumo {

Result<std::unique_ptr<OutputLock>> OutputLock::Take(const std::string& directory) {
  const std::string path = JoinPath(directory, ".lock");
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (fd < 0) return FailedPrecondition(path + ": " + std::strerror(errno));
  // The kernel lets go when the process ends, however it ends.
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return Unavailable("another job is running with output.directory " + directory +
                       ": stop it, or choose another directory");
  }
  return std::unique_ptr<OutputLock>(new OutputLock(fd));
}

OutputLock::~OutputLock() { close(fd_); }

}  // namespace kumo
