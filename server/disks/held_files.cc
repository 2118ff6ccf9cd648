#include "server/disks/held_files.h"

#include <algorithm>
#include <memory>
#include <vector>

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

}  // namespace kumo
