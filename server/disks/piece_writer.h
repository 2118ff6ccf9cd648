// Writes the files of checkpoints that come piece by piece from another server's disk
// (file_fetch.h) to this one's, one at a time: each appears under its name, durable, with its last
// piece, when it is what its manifest says.
//
// Owned by the Disk; on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "server/protocol/actions.h"

namespace kumo {

class PieceWriter {
 public:
  // files is borrowed for life. folder: of the checkpoints.
  PieceWriter(FileSystem* files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  // A piece at offset 0 begins another file, and lets go what there is of the one before.
  // DataLoss: the file is whole and not what was promised. Internal: a piece out of its order.
  Status Write(const WritePieceAction& write);

 private:
  FileSystem* const files_;
  const std::string folder_;
  std::unique_ptr<AtomicFile> file_;
  std::string path_;
  uint64_t fetch_ = 0;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace kumo
