#include "common/transport/malloc_tuning.h"

#include <malloc.h>

#include <climits>

namespace kumo {

void TuneMallocForLargeMessages() {
  mallopt(M_MMAP_MAX, 0);              // never a mapping of its own for a large block
  mallopt(M_ARENA_MAX, 1);             // what the I/O thread frees, the loop thread reuses
  mallopt(M_TRIM_THRESHOLD, INT_MAX);  // never back to the kernel
  mallopt(M_TOP_PAD, 64 << 20);        // grow in steps worth a system call
}

}  // namespace kumo
