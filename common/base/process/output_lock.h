// One job per output directory: server 0 holds this lock as long as it lives, whatever ends it. In
// the file is a token of its own, by which other processes see whether they have the same
// directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

class OutputLock {
 public:
  // Unavailable, saying so, while another process holds the directory's lock. The directory must
  // exist. token: what others are to read there, durable on return; 0: none. ResourceExhausted,
  // DataLoss where it cannot be written.
  static Result<std::unique_ptr<OutputLock>> Take(const std::string& directory, uint64_t token = 0);
  // The token of who took the directory's lock last; 0 where there is none that can be read.
  static uint64_t ReadToken(FileSystem& files, const std::string& directory);
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
