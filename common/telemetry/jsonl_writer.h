// A log that programs read: one JSON object a line, each beginning with the round that it is about:
//   {"round":812,"kind":"progress","loss":0.1832,...}
//
// One thread. Every line is in the system's hands when Write returns.
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
  // Opens a log that goes on after round `last_round`: lines about later rounds and damaged ones (a
  // crash may leave half a line) are taken out, in one step. -1 starts a new log. files: borrowed
  // during the call.
  static Result<std::unique_ptr<JsonlWriter>> Open(FileSystem& files, const std::string& path,
                                                   int64_t last_round);

  Status Write(int64_t round, const JsonFields& fields);
  // To the disk.
  Status Flush() { return file_->Sync(); }

 private:
  explicit JsonlWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
};

}  // namespace kumo
