// One job per output directory: server 0 holds this lock as long as it lives, whatever ends it.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"

namespace kumo {

class OutputLock {
 public:
  // Unavailable, saying so, while another process holds the directory's lock. The directory must
  // exist.
  static Result<std::unique_ptr<OutputLock>> Take(const std::string& directory);
  // Whether Take would get it now. Creates nothing; the directory need not exist.
  static Status Probe(const std::string& directory);
  ~OutputLock();  // lets go
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  explicit OutputLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace kumo
