#include "common/base/process/parent_death.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace kumo {

Status DieWithParent(pid_t parent, int signal) {
  if (prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal), 0ul, 0ul, 0ul) != 0) {
    return Internal(std::string("prctl(PR_SET_PDEATHSIG): ") + std::strerror(errno));
  }
  // The parent may have died before the line above.
  if (getppid() != parent) return Aborted("the parent process has died");
  return OkStatus();
}

}  // namespace kumo
