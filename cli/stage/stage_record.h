// What has been staged into a folder: a line for each file that is there whole, with its checksum.
//
//   <crc32c of the rest of the line> <crc32c of the file> <size> <modified_ns> <path>
//
// The checksums are 8 hex digits. Lines are added as files become whole; of two lines for one path
// the later one counts. A line that is torn, or damaged, is passed over: its file is staged again.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cli/stage/source_files.h"
#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

struct StagedFile {
  SourceFile source;    // as it was
  uint32_t crc32c = 0;  // of its bytes
};

class StageRecord {
 public:
  // files is borrowed for life. Reads what is there; none is none. The errors of reading a file.
  static Result<StageRecord> Open(FileSystem* files, std::string path);

  const std::map<std::string, StagedFile>& files() const { return staged_; }

  // Adds a line behind the others. The errors of writing a file.
  Status Add(StagedFile file);
  // Without it a file is staged anew should it be seen again; lasts from the next Rewrite on.
  void Forget(const std::string& path) { staged_.erase(path); }
  // A line for each file, durable on return. The errors of writing a file.
  Status Rewrite();

 private:
  StageRecord(FileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}

  FileSystem* files_;
  std::string path_;
  std::map<std::string, StagedFile> staged_;  // by path
  std::unique_ptr<WritableFile> lines_;       // opened by the first Add
};

}  // namespace kumo
