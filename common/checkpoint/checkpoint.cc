#include "common/checkpoint/checkpoint.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "common/base/crc32c.h"
#include "common/checkpoint/best.h"

namespace kumo {
namespace {

constexpr std::string_view kPrefix = "round-";

std::string ManifestPath(const std::string& folder, const std::string& name) {
  return JoinPath(JoinPath(folder, name), "MANIFEST");
}

// Names of all folders that are or may become a checkpoint, newest first.
Result<std::vector<std::string>> ListCandidates(FileSystem& files, const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(const bool there, files.Has(folder));
  if (!there) return std::vector<std::string>();
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(folder));
  std::erase_if(names, [](const std::string& name) { return VersionOf(name) < 0; });
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return VersionOf(a) > VersionOf(b); });
  return names;
}

Result<uint32_t> ChecksumOfFile(FileSystem& files, const std::string& path, uint64_t bytes) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  if (file->size() != bytes) {
    return DataLoss("checkpoint file " + path + " is " + std::to_string(file->size()) +
                    " bytes long, but the manifest says " + std::to_string(bytes));
  }
  std::vector<std::byte> piece(std::min<uint64_t>(bytes, 256 << 10));
  uint32_t crc32c = 0;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    const auto now = std::span(piece).first(std::min<uint64_t>(piece.size(), bytes - at));
    KUMO_RETURN_IF_ERROR(file->Read(at, now));
    crc32c = ExtendCrc32c(crc32c, now);
  }
  return crc32c;
}

// Opens a file of a manifest and checks its identity.
Result<std::unique_ptr<ShardFileReader>> OpenShardFile(FileSystem& files,
                                                       const std::string& directory,
                                                       const checkpoint::Manifest& manifest,
                                                       int index) {
  const std::string path = JoinPath(directory, manifest.files(index).name());
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ShardFileReader> reader,
                        ShardFileReader::Open(files, path));
  const ShardFileHeader& header = reader->header();
  if (header.experiment_hash != manifest.experiment_hash() ||
      header.fingerprint != manifest.fingerprint() || header.version != manifest.version() ||
      header.generation != manifest.generation()) {
    return DataLoss("checkpoint file " + path +
                    " belongs to another checkpoint than the manifest in its folder");
  }
  // Servers without a chunk write no file, so the index in the manifest may differ from the shard.
  const std::string own_name = ShardFileName(header.shard, header.shards, header.generation);
  if (manifest.files(index).name() != own_name) {
    return DataLoss("checkpoint file " + path + " has the contents of " + own_name);
  }
  return reader;
}

// NotFound would mean "no such checkpoint", but a missing file of a manifest is damage.
Status AsDamage(const Status& status) {
  if (status.code() != StatusCode::kNotFound) return status;
  return DataLoss(status.message());
}

Status VerifyFileIn(FileSystem& files, const std::string& directory,
                    const checkpoint::Manifest& manifest, int index) {
  const checkpoint::File& file = manifest.files(index);
  const std::string path = JoinPath(directory, file.name());
  KUMO_ASSIGN_OR_RETURN(uint32_t crc32c, ChecksumOfFile(files, path, file.bytes()));
  if (crc32c != file.crc32c()) {
    // The file's own checksums locate the damage; if they match, it is another file.
    KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ShardFileReader> reader,
                          ShardFileReader::Open(files, path));
    KUMO_RETURN_IF_ERROR(reader->Verify());
    return DataLoss("checkpoint file " + path + " is not the file that the manifest lists");
  }
  return OpenShardFile(files, directory, manifest, index).status();
}

// Removes the manifest first: after a power failure in between, the rest is no checkpoint.
Status RemoveCheckpoint(FileSystem& files, const std::string& folder, const std::string& name) {
  const std::string directory = JoinPath(folder, name);
  KUMO_ASSIGN_OR_RETURN(const bool complete, files.Has(ManifestPath(folder, name)));
  if (complete) {
    KUMO_RETURN_IF_ERROR(files.RemoveFile(ManifestPath(folder, name)));
    KUMO_RETURN_IF_ERROR(files.SyncDirectory(directory));
  }
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, files.List(directory));
  for (const std::string& file : names) {
    KUMO_RETURN_IF_ERROR(files.RemoveFile(JoinPath(directory, file)));
  }
  return files.RemoveEmptyDirectory(directory);
}

}  // namespace

std::string CheckpointName(int64_t version) {
  char name[40];
  std::snprintf(name, sizeof(name), "round-%012" PRId64, version);
  return name;
}

int64_t VersionOf(const std::string& name) {
  if (name.size() < kPrefix.size() + 12 || name.size() > kPrefix.size() + 18 ||
      !name.starts_with(kPrefix)) {
    return -1;
  }
  int64_t version = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return -1;
    version = version * 10 + (c - '0');
  }
  return CheckpointName(version) == name ? version : -1;
}

std::string ShardFileName(uint32_t shard, uint32_t shards, uint32_t generation) {
  char name[64];
  std::snprintf(name, sizeof(name), "shard-%02" PRIu32 "-of-%02" PRIu32 ".generation-%" PRIu32,
                shard, shards, generation);
  return name;
}

std::optional<ShardFileNumbers> ParseShardFileName(const std::string& name) {
  ShardFileNumbers numbers;
  if (std::sscanf(name.c_str(), "shard-%" SCNu32 "-of-%" SCNu32 ".generation-%" SCNu32,
                  &numbers.shard, &numbers.shards, &numbers.generation) != 3 ||
      ShardFileName(numbers.shard, numbers.shards, numbers.generation) != name) {
    return std::nullopt;
  }
  return numbers;
}

bool IsAbout(const checkpoint::File& file, Range range) {
  if (file.begin() >= file.end()) return true;
  return file.begin() < range.end && file.end() > range.begin;
}

Result<SavedShardFile> SaveShard(FileSystem& files, const std::string& folder,
                                 const ShardFileHeader& header, const ShardSnapshot& snapshot) {
  const std::string directory = JoinPath(folder, CheckpointName(header.version));
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(directory));
  const std::string path =
      JoinPath(directory, ShardFileName(header.shard, header.shards, header.generation));
  return WriteShardFile(files, path, header, snapshot);
}

Result<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCandidates(files, folder));
  std::vector<std::string> complete;
  for (const std::string& name : names) {
    KUMO_ASSIGN_OR_RETURN(const bool has, files.Has(ManifestPath(folder, name)));
    if (has) complete.push_back(name);
  }
  return complete;
}

Result<std::string> FindLatest(FileSystem& files, const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  if (names.empty()) return NotFound("there is no checkpoint in " + folder);
  return names.front();
}

Status VerifyFiles(FileSystem& files, const std::string& folder,
                   const checkpoint::Manifest& manifest) {
  const std::string directory = JoinPath(folder, CheckpointName(manifest.version()));
  for (int i = 0; i < manifest.files_size(); ++i) {
    KUMO_RETURN_IF_ERROR(AsDamage(VerifyFileIn(files, directory, manifest, i)));
  }
  return OkStatus();
}

Status VerifyFile(FileSystem& files, const std::string& folder,
                  const checkpoint::Manifest& manifest, int index) {
  const std::string directory = JoinPath(folder, CheckpointName(manifest.version()));
  return AsDamage(VerifyFileIn(files, directory, manifest, index));
}

Result<checkpoint::Manifest> VerifyCheckpoint(FileSystem& files, const std::string& folder,
                                              const std::string& name) {
  KUMO_ASSIGN_OR_RETURN(checkpoint::Manifest manifest, ReadManifest(files, folder, name));
  KUMO_RETURN_IF_ERROR(VerifyFiles(files, folder, manifest));
  return manifest;
}

Result<VerifiedCheckpoint> NewestVerified(FileSystem& files, const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListCheckpoints(files, folder));
  VerifiedCheckpoint verified;
  for (const std::string& name : names) {
    Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
    if (manifest.ok()) {
      verified.name = name;
      verified.manifest = std::move(manifest).value();
      return verified;
    }
    verified.refused.push_back(name + ": " + manifest.status().message());
  }
  std::string message = "there is no usable checkpoint in " + folder;
  for (const std::string& refused : verified.refused) message += "; " + refused;
  return NotFound(message);
}

Result<checkpoint::Manifest> OrNewestValid(Result<checkpoint::Manifest> manifest, FileSystem& files,
                                           const std::string& folder) {
  if (manifest.status().code() != StatusCode::kDataLoss) return manifest;
  const Result<VerifiedCheckpoint> valid = NewestVerified(files, folder);
  return DataLoss(manifest.status().message() +
                  (valid.ok() ? "; use " + JoinPath(folder, valid->name) +
                                    ", the newest valid checkpoint of that folder"
                              : "; restore the file from a copy, or name a checkpoint of another "
                                "job: no checkpoint in " +
                                    folder + " is valid"));
}

Result<ShardSnapshot> ReadSnapshot(FileSystem& files, const std::string& folder,
                                   const checkpoint::Manifest& manifest, Range wanted) {
  ShardSnapshot snapshot;
  snapshot.version = manifest.version();
  if (wanted.size() == 0) return snapshot;
  const std::string directory = JoinPath(folder, CheckpointName(manifest.version()));
  for (int i = 0; i < manifest.files_size(); ++i) {
    if (!IsAbout(manifest.files(i), wanted)) continue;
    Result<std::unique_ptr<ShardFileReader>> reader = OpenShardFile(files, directory, manifest, i);
    if (!reader.ok()) return AsDamage(reader.status());
    KUMO_RETURN_IF_ERROR((*reader)->ReadOverlapping(wanted, &snapshot.arrays));
  }
  return snapshot;
}

Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep, int64_t committed) {
  CHECK_GE(keep.newest, 1);
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> complete, ListCheckpoints(files, folder));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> candidates, ListCandidates(files, folder));
  const auto later = [&](const std::string& name) { return VersionOf(name) > committed; };
  std::vector<std::string> checkpoints = complete;
  std::erase_if(checkpoints, later);
  std::vector<std::string> removed;
  // The newest checkpoint that verifies stays, wherever it is; until one is found, all stay.
  const auto verified =
      std::find_if(checkpoints.begin(), checkpoints.end(), [&](const std::string& name) {
        return VersionOf(name) == keep.verified || VerifyCheckpoint(files, folder, name).ok();
      });
  if (verified == checkpoints.end()) return removed;
  const auto first_removed =
      checkpoints.begin() + std::min<std::ptrdiff_t>(keep.newest, std::ssize(checkpoints));
  std::set<std::string> kept(checkpoints.begin(), first_removed);
  kept.insert(*verified);
  const auto sound = std::find_if(checkpoints.begin(), checkpoints.end(), [&](const auto& name) {
    const Result<checkpoint::Manifest> manifest = ReadManifest(files, folder, name);
    return manifest.ok() && manifest->diverged().empty();
  });
  if (sound != checkpoints.end()) kept.insert(*sound);
  KUMO_ASSIGN_OR_RETURN(const Contenders contenders,
                        ContendersForBest(files, folder, checkpoints, keep.best));
  for (const std::optional<checkpoint::Manifest>& one : {contenders.best, contenders.waiting}) {
    if (one) kept.insert(one->name());
  }
  for (const std::string& name : candidates) {
    const bool being_written = later(name) && !std::count(complete.begin(), complete.end(), name);
    if (kept.contains(name) || being_written) continue;
    KUMO_RETURN_IF_ERROR(RemoveCheckpoint(files, folder, name));
    removed.push_back(name);
  }
  return removed;
}

Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  if (names.empty()) return std::vector<std::string>();
  return PruneCheckpoints(files, folder, keep, VersionOf(names.front()));
}

Status RemoveUnfinished(FileSystem& files, const std::string& folder, int64_t version) {
  const std::string name = CheckpointName(version);
  KUMO_ASSIGN_OR_RETURN(const bool there, files.Has(JoinPath(folder, name)));
  KUMO_ASSIGN_OR_RETURN(const bool complete, files.Has(ManifestPath(folder, name)));
  if (!there || complete) return OkStatus();
  return RemoveCheckpoint(files, folder, name);
}

}  // namespace kumo
