// One job per output directory: server 0 holds this lock as long as it lives, whatever ends it. In
// the file is a token of its own, by which other processes see whether they have the same
// directory, and its address, by which `kumo status DIR` finds it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// What who takes a lock has to say, for other processes to read there.
struct LockHolder {
  uint64_t token = 0;     // 0: nothing is said
  std::string address{};  // one line; "": not said
};

class OutputLock {
 public:
  // Unavailable, saying so, while another process holds the directory's lock. The directory must
  // exist. What the holder says is durable on return. ResourceExhausted, DataLoss where it cannot
  // be written.
  static Result<std::unique_ptr<OutputLock>> Take(const std::string& directory,
                                                  const LockHolder& holder = {});
  // Who took the directory's lock last; nobody where there is none that can be read.
  static LockHolder ReadHolder(FileSystem& files, const std::string& directory);
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
