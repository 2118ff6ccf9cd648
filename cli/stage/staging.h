// Brings a data set into a folder of this machine: what is not there yet, or not as it was.
//
// A file that was staged and whose source has the same size and time is kept, after its bytes have
// been read and found to be what they were. All others are copied, a few at a time. Whatever ends
// it, it goes on where it was: whole files are in the record, and what there is of the others in
// parts. Files that the source no longer has, and that were staged, are removed.
//
//   <destination>/.kumo-stage/staged        the record (stage_record.h)
//   <destination>/.kumo-stage/<16 hex>.part what is not whole yet
//
// One Staging at a time for a destination: the caller holds its lock. One thread, but for those
// that Run has of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/stage/file_copy.h"
#include "cli/stage/source_files.h"
#include "cli/stage/stage_record.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace kumo {

struct StagingOptions {
  int jobs = 4;        // files at a time
  bool quick = false;  // what was staged is kept without reading it
  // Tells one start of the machine from another: a part from before may have lost bytes.
  std::string boot{};
};

struct StagingProgress {
  uint64_t files = 0, bytes = 0;  // of the source
  uint64_t copied_files = 0, kept_files = 0;
  uint64_t copied_bytes = 0, read_bytes = 0;  // read_bytes: of those that were kept
  uint64_t removed_files = 0;
  std::vector<std::string> damaged;  // staged before, but no longer what they were; at most 20
};

class Staging {
 public:
  // files is borrowed for life. Reads the record of `destination`, which must have its
  // .kumo-stage, and sees what is to be done. The errors of reading files; ResourceExhausted where
  // the disk has no room for it.
  static Result<std::unique_ptr<Staging>> Plan(FileSystem* files, Source source,
                                               std::string destination, StagingOptions options);

  // Does it. `tick` is called now and then in the calling thread; false ends it: Aborted. Else the
  // first error: those of reading and writing files; Unavailable where a file of the source changed
  // meanwhile.
  Status Run(const std::function<bool(const StagingProgress&)>& tick);

  StagingProgress progress() const;

 private:
  struct Task {
    SourceFile file;
    std::optional<uint32_t> crc32c;  // of what was staged: it is kept if it has that still
  };

  Staging(FileSystem* files, Source source, std::string destination, StagingOptions options,
          StageRecord record);

  std::string DestinationOf(const std::string& path) const;
  std::string PartOf(const SourceFile& file) const;
  Status CheckRoom() const;
  // By Run's threads.
  void Work();
  Status Do(const Task& task);
  Result<bool> Keeps(const Task& task);
  Status Copy(const SourceFile& file);
  // First: what the source no longer has, where it is in the way.
  Status MakeWay() KUMO_REQUIRES(mutex_);
  // Last: the rest of that, and parts that nobody will go on with.
  Status CleanUp() KUMO_REQUIRES(mutex_);
  Status Remove(const std::string& path) KUMO_REQUIRES(mutex_);

  FileSystem* const files_;
  const std::string folder_;  // of the source
  const std::string destination_;
  const StagingOptions options_;
  std::vector<Task> tasks_;
  std::vector<std::string> gone_;  // from the source
  std::atomic<size_t> next_{0};    // of tasks_
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;
  CondVar ended_;
  int working_ KUMO_GUARDED_BY(mutex_) = 0;
  Status failure_ KUMO_GUARDED_BY(mutex_);
  StagingProgress progress_ KUMO_GUARDED_BY(mutex_);
  StageRecord record_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
