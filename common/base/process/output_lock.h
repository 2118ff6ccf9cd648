// Output lock: ensures one job per output directory. Server 0 holds the lock until its process
// ends, however it ends. The lock file contains a token, by which other processes recognise a
// shared directory, and server 0's address, which `kumo status DIR` reads.
//
// A lock has one owner; the static functions are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/choice.h"
#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// Contents of the lock file, for other processes.
struct LockHolder {
  uint64_t token = 0;     // 0: none
  std::string address{};  // one line; "": none
  // The holder took no kernel lock, so only its address tells whether it lives.
  bool unlocked = false;
};

// Kind of lock. Some file systems lack the kernel's (flock); without it nothing keeps two jobs from
// using one directory.
enum class FileLock { kKernel, kNone };
inline constexpr Choice<FileLock> kFileLocks[] = {
    {FileLock::kKernel, "kernel"},
    {FileLock::kNone, "none", "for file systems without locks: another job is not noticed"},
};
constexpr std::span<const Choice<FileLock>> ChoicesOf(FileLock) { return kFileLocks; }

class OutputLock {
 public:
  // Takes the lock of an existing directory and makes `holder` durable. Unavailable if another
  // process holds it; FailedPrecondition if the file system has no locks, or a FIFO or a link is in
  // the file's place; ResourceExhausted or DataLoss if the file cannot be written.
  static Result<std::unique_ptr<OutputLock>> Take(const std::string& directory,
                                                  const LockHolder& holder = {},
                                                  FileLock lock = FileLock::kKernel);
  // The last holder of the lock; empty if there is no readable lock file.
  static LockHolder ReadHolder(FileSystem& files, const std::string& directory);
  // Unavailable if another process holds the kernel's lock; the file may be missing. Changes
  // nothing.
  static Status Probe(const std::string& directory);
  // Checks that Take would succeed now. Leaves nothing behind; the directory need not exist.
  static Status CheckFree(const std::string& directory, FileLock lock = FileLock::kKernel);
  // Releases the lock; without a kernel lock, removes the file of this holder.
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  explicit OutputLock(int fd) : fd_(fd) {}

  const int fd_;
  std::string removed_;  // file to remove at the end; "": none
};

}  // namespace kumo
