// JSONL log: one JSON object per line; each line begins with its round:
//   {"round":812,"kind":"progress","loss":0.1832,...}
//
// One thread. Write returns when the operating system has the line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/status.h"

namespace kumo {

class JsonlWriter {
 public:
  // Opens a log that continues after round `last_round`: atomically removes lines about later
  // rounds and damaged lines (a crash may leave half a line). -1 starts a new log. files is not
  // kept.
  static Result<std::unique_ptr<JsonlWriter>> Open(FileSystem& files, const std::string& path,
                                                   int64_t last_round);

  Status Write(int64_t round, const JsonFields& fields);
  // Makes the lines durable.
  Status Flush() { return file_->Sync(); }

 private:
  explicit JsonlWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
};

}  // namespace kumo
