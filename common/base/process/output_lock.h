// Output lock: ensures one job per output directory. Server 0 holds the lock until its process
// ends, however it ends. The lock file contains a token, by which other processes recognise a
// shared directory, and server 0's address, which `kumo status DIR` reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Contents of the lock file, for other processes.
struct LockHolder {
  uint64_t token = 0;     // 0: none
  std::string address{};  // one line; "": none
};

class OutputLock {
 public:
  // Takes the lock of an existing directory and makes `holder` durable. Unavailable if another
  // process holds it; ResourceExhausted or DataLoss if the file cannot be written.
  static Result<std::unique_ptr<OutputLock>> Take(const std::string& directory,
                                                  const LockHolder& holder = {});
  // The last holder of the lock; empty if there is no readable lock file.
  static LockHolder ReadHolder(FileSystem& files, const std::string& directory);
  // Checks whether Take would succeed now. Creates nothing; the directory need not exist.
  static Status Probe(const std::string& directory);
  ~OutputLock();  // releases the lock
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  explicit OutputLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace kumo
