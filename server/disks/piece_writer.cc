#include "server/disks/piece_writer.h"

#include <utility>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {

Status PieceWriter::Write(const WritePieceAction& write) {
  const std::string directory = JoinPath(folder_, CheckpointName(write.version));
  const std::string path = JoinPath(directory, write.file.name());
  if (write.offset == 0) {
    file_.reset();
    KUMO_RETURN_IF_ERROR(files_->CreateDirectories(directory));
    KUMO_ASSIGN_OR_RETURN(file_, AtomicFile::Create(*files_, path));
    path_ = path;
    fetch_ = write.fetch;
    bytes_ = 0;
    crc32c_ = 0;
  }
  if (!file_ || path != path_ || write.fetch != fetch_ || write.offset != bytes_) {
    return Internal("a piece at " + std::to_string(write.offset) + " of " + path +
                    " comes out of its order");
  }
  const Status appended = file_->Append(write.bytes.bytes);
  if (!appended.ok()) {
    file_.reset();
    return appended;
  }
  bytes_ += write.bytes.bytes.size();
  crc32c_ = ExtendCrc32c(crc32c_, write.bytes.bytes);
  if (bytes_ < write.file.bytes()) return OkStatus();
  const std::unique_ptr<AtomicFile> whole = std::move(file_);
  if (bytes_ != write.file.bytes() || crc32c_ != write.file.crc32c()) {
    return DataLoss("what was fetched as " + path + " has another checksum than the manifest says");
  }
  return whole->Commit();
}

}  // namespace kumo
