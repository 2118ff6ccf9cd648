// Where a service hears that it is to stop: from the process's signals (signals.h), or from whoever
// runs it in a process with others.
#pragma once

#include <vector>

namespace kumo {

class StopSource {
 public:
  virtual ~StopSource() = default;
  // Readable when signals have come that Take has not yet given out. May be polled from any thread.
  virtual int fd() const = 0;
  // The signals since the last call, in order; empty when there were none. Never waits.
  virtual std::vector<int> Take() = 0;
};

}  // namespace kumo
