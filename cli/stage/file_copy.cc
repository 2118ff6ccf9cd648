#include "cli/stage/file_copy.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/base/crc32c.h"

namespace kumo {
namespace {

// Long enough for network file systems, which read ahead by megabytes.
constexpr uint64_t kPiece = uint64_t{4} << 20;

using OnPiece = std::function<Status(std::span<const std::byte> piece)>;

// Hands over a file's bytes [begin, end), one piece after the other.
Status ReadPieces(FileSystem& files, const std::string& path, uint64_t begin, uint64_t end,
                  const OnBytes& on_bytes, const OnPiece& on_piece) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  std::vector<std::byte> buffer(std::min(kPiece, end - begin));
  for (uint64_t at = begin; at < end;) {
    const std::span<std::byte> piece(buffer.data(), std::min(kPiece, end - at));
    KUMO_RETURN_IF_ERROR(file->Read(at, piece));
    KUMO_RETURN_IF_ERROR(on_piece(piece));
    at += piece.size();
    if (!on_bytes(piece.size())) return Aborted("stopped");
  }
  return OkStatus();
}

// How much of a file a part of it has; one that is longer is of something else.
Result<uint64_t> LengthOfPart(FileSystem& files, const std::string& part, uint64_t size) {
  if (!files.Exists(part)) return uint64_t{0};
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(part));
  if (file->size() <= size) return file->size();
  KUMO_RETURN_IF_ERROR(files.RemoveFile(part));
  return uint64_t{0};
}

}  // namespace

Result<uint32_t> ChecksumOf(FileSystem& files, const std::string& path, uint64_t size,
                            const OnBytes& on_bytes) {
  uint32_t crc = 0;
  const auto add = [&](std::span<const std::byte> piece) {
    crc = ExtendCrc32c(crc, piece);
    return OkStatus();
  };
  KUMO_RETURN_IF_ERROR(ReadPieces(files, path, 0, size, on_bytes, add));
  return crc;
}

Result<uint32_t> CopyFile(FileSystem& files, const std::string& from, uint64_t size,
                          const std::string& part, const std::string& to, const OnBytes& on_bytes) {
  KUMO_ASSIGN_OR_RETURN(const uint64_t begin, LengthOfPart(files, part, size));
  uint32_t crc = 0;
  if (begin > 0) {
    KUMO_ASSIGN_OR_RETURN(crc, ChecksumOf(files, part, begin, on_bytes));
  }
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, files.OpenForAppending(part));
  const auto append = [&](std::span<const std::byte> piece) {
    crc = ExtendCrc32c(crc, piece);
    return copy->Append(piece);
  };
  KUMO_RETURN_IF_ERROR(ReadPieces(files, from, begin, size, on_bytes, append));
  KUMO_RETURN_IF_ERROR(copy->Sync());
  KUMO_RETURN_IF_ERROR(copy->Close());
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(DirectoryOf(to)));
  KUMO_RETURN_IF_ERROR(files.Rename(part, to));
  return crc;
}

}  // namespace kumo
