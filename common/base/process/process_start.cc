#include "common/base/process/process_start.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

namespace kumo {

void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one, as lower ones are open. It stays open in children.
    const int null = ::open("/dev/null", O_RDWR);
    if (null >= 0 && null != fd) ::close(null);
  }
}

Status DieWithParent(pid_t parent, int signal) {
  if (prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal), 0ul, 0ul, 0ul) != 0) {
    return Internal(std::string("prctl(PR_SET_PDEATHSIG): ") + std::strerror(errno));
  }
  // The parent may have died before prctl.
  if (getppid() != parent) return Aborted("the parent process has died");
  return OkStatus();
}

void TuneMallocForLargeMessages() {
  mallopt(M_MMAP_MAX, 0);              // never a mapping of its own for a large block
  mallopt(M_ARENA_MAX, 1);             // what the I/O thread frees, the loop thread reuses
  mallopt(M_TRIM_THRESHOLD, INT_MAX);  // never back to the kernel
  mallopt(M_TOP_PAD, 64 << 20);        // grow in steps worth a system call
}

}  // namespace kumo
