// Staging: copies a data set into a folder of this machine, skipping what is already there.
//
// A staged file whose source has the same size and time is kept if its bytes still have the
// recorded checksum. All other files are copied, a few at a time. An interrupted staging resumes:
// complete files are in the record, partial copies continue. Staged files that the source no longer
// has are removed.
//
//   <destination>/.kumo-stage/staged        the record (StageRecord)
//   <destination>/.kumo-stage/<16 hex>.part partial copies
//
// One Staging at a time per destination: the caller holds its lock. One thread, except for Run's
// own threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/stage/source_files.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace kumo {

// A file that was staged.
struct StagedFile {
  SourceFile source;    // its state at that time
  uint32_t crc32c = 0;  // of its bytes
};

// Staging record: one line per complete file, with its checksum.
//
//   <crc32c of the rest of the line> <crc32c of the file> <size> <modified_ns> <path>
//
// The checksums have 8 hex digits. Lines are appended when files are complete; the last line of a
// path counts. A torn or damaged line is ignored: its file is staged again.
//
// One thread at a time.
class StageRecord {
 public:
  // files must outlive the record. Reads the existing record, if any. The errors of reading a file.
  static Result<StageRecord> Open(FileSystem* files, std::string path);

  const std::map<std::string, StagedFile>& files() const { return staged_; }

  // Appends a line. The errors of writing a file.
  Status Add(StagedFile file);
  // Removes a file, so that it is staged anew if it appears again; durable with the next Rewrite.
  void Forget(const std::string& path) { staged_.erase(path); }
  // Writes one line per file, durably. The errors of writing a file.
  Status Rewrite();

 private:
  StageRecord(FileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}

  FileSystem* files_;
  std::string path_;
  std::map<std::string, StagedFile> staged_;  // by path
  std::unique_ptr<WritableFile> lines_;       // opened by the first Add
};

struct StagingOptions {
  int jobs = 4;        // concurrent files
  bool quick = false;  // keeps staged files without reading them
  // Identifies a boot of the machine: partial copies from before a reboot may have lost bytes.
  std::string boot{};
};

struct StagingProgress {
  uint64_t files = 0, bytes = 0;  // of the source
  uint64_t copied_files = 0, kept_files = 0;
  uint64_t copied_bytes = 0;
  uint64_t read_bytes = 0;    // of kept files
  uint64_t unread_bytes = 0;  // of files that are kept without reading them
  uint64_t removed_files = 0;
  std::vector<std::string> damaged;  // staged files whose bytes had changed; at most 20
};

// "1.2 GiB of 3.4 GiB, 812 of 70012 files, 93.1 MiB/s, ETA 24 s". Unread bytes are done, but took
// no time.
std::string ProgressText(const StagingProgress& progress, double seconds);

class Staging {
 public:
  // files must outlive this object. Reads the record of `destination`, which must have its
  // .kumo-stage, and plans the work. The errors of reading files; ResourceExhausted if the disk is
  // too full.
  static Result<std::unique_ptr<Staging>> Plan(FileSystem* files, Source source,
                                               std::string destination, StagingOptions options);

  // Does the work. Calls `tick` regularly in the calling thread; false aborts (Aborted). Otherwise
  // the first error: of reading and writing files, or Unavailable if a source file changed
  // meanwhile.
  Status Run(const std::function<bool(const StagingProgress&)>& tick);

  StagingProgress progress() const;

 private:
  struct Task {
    SourceFile file;
    std::optional<uint32_t> crc32c;  // of the staged file: keep it if it still matches
  };

  Staging(FileSystem* files, Source source, std::string destination, StagingOptions options,
          StageRecord record);

  std::string DestinationOf(const std::string& path) const;
  std::string PartOf(const SourceFile& file) const;
  Status CheckRoom() const;
  // Called by Run's threads.
  void Work();
  Status Do(const Task& task);
  Result<bool> Keeps(const Task& task);
  Status Copy(const SourceFile& file);
  // part: its complete copy.
  Status PutInPlace(const StagedFile& file, const std::string& part);
  // First step: removes old files that are in the way.
  Status MakeWay() KUMO_REQUIRES(mutex_);
  // Last step: removes the other old files and abandoned partial copies.
  Status CleanUp() KUMO_REQUIRES(mutex_);
  Status Remove(const std::string& path) KUMO_REQUIRES(mutex_);

  FileSystem* const files_;
  const std::string folder_;  // of the source
  const std::string destination_;
  const StagingOptions options_;
  std::vector<Task> tasks_;
  std::vector<std::string> gone_;  // staged, but no longer in the source
  std::atomic<size_t> next_{0};    // index into tasks_
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;
  CondVar ended_;
  int working_ KUMO_GUARDED_BY(mutex_) = 0;
  Status failure_ KUMO_GUARDED_BY(mutex_);
  StagingProgress progress_ KUMO_GUARDED_BY(mutex_);
  StageRecord record_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
