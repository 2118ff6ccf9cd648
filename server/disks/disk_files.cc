#include "server/disks/disk_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint.h"
#include "common/job/protocol.h"

namespace kumo {

wire::HeldCheckpoints HeldCheckpoints(FileSystem& files, const std::string& folder) {
  wire::HeldCheckpoints held;
  const auto names = ListCheckpoints(files, folder);
  if (!names.ok()) return held;
  for (const std::string& name : *names) {
    const auto manifest = ReadManifest(files, folder, name);
    if (!manifest.ok()) continue;
    if (held.checkpoints_size() == kMostHeldCheckpoints) break;
    auto* const one = held.add_checkpoints();
    one->set_version(manifest->version());
    one->set_generation(manifest->generation());
    for (int i = 0; i < manifest->files_size(); ++i) {
      const checkpoint::File& file = manifest->files(i);
      const auto opened = files.OpenForReading(JoinPath(JoinPath(folder, name), file.name()));
      if (opened.ok() && (*opened)->size() == file.bytes()) one->add_files(i);
    }
  }
  return held;
}

Result<Payload> ReadPiece(FileSystem& files, const std::string& folder, wire::FilePiece* piece) {
  const bool manifest = piece->shard() < 0;
  const std::string name =
      manifest ? "MANIFEST"
               : ShardFileName(static_cast<uint32_t>(piece->shard()),
                               static_cast<uint32_t>(piece->shards()), piece->generation());
  const std::string path = JoinPath(JoinPath(folder, CheckpointName(piece->version())), name);
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  piece->set_file_bytes(file->size());
  if (piece->offset() >= file->size()) {
    return InvalidArgument(path + " has no byte " + std::to_string(piece->offset()));
  }
  const uint64_t bytes = std::min<uint64_t>(piece->bytes(), file->size() - piece->offset());
  const auto buffer = std::make_shared<std::vector<std::byte>>(bytes);
  KUMO_RETURN_IF_ERROR(file->Read(piece->offset(), *buffer));
  return Payload{buffer, *buffer};
}

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
    return Internal("the piece at offset " + std::to_string(write.offset) + " of " + path +
                    " is out of order");
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
    return DataLoss("the fetched file " + path + " differs from its manifest in size or checksum");
  }
  return whole->Commit();
}

}  // namespace kumo
