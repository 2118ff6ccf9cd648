// The checkpoints of a job: folders below <output>/checkpoints.
//
//   round-000000001200/                               at version 1200 of the weights
//     shard-00-of-02.generation-1                     one file per server (shard_file.h)
//     shard-01-of-02.generation-1
//     MANIFEST                                        text protobuf kumo.checkpoint.Manifest, whose
//                                                     last line is "# crc32c <8 hex digits>", the
//                                                     CRC-32C of the lines before
//
// Each server writes its file; when all are durable the coordinator writes the manifest, in one
// step, which makes the folder a checkpoint. A folder without a manifest is not one, whatever is in
// it. The generation in the names lets a job that went back and came to the same round again write
// beside the files of the old manifest until the new one takes its place.
//
// `folder` below is <output>/checkpoints, `name` that of a checkpoint in it. Functions; nothing is
// kept between two calls. One process at a time may write or prune; readers need no lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// "round-%012d" of a version of the weights.
std::string CheckpointName(int64_t version);
// The name that server `shard` gives its file: "shard-00-of-02.generation-1".
std::string ShardFileName(uint32_t shard, uint32_t shards, uint32_t generation);

// The numbers that such a name says; none where it is not one.
struct ShardFileNumbers {
  uint32_t shard = 0, shards = 0, generation = 0;
};
std::optional<ShardFileNumbers> ParseShardFileName(const std::string& name);
// Whether a file may have something about positions of the flat vector.
bool IsAbout(const checkpoint::File& file, Range range);

// Writes a server's file of the checkpoint at header.version, creating the folders if need be.
// Blocks until the file is durable: call it from a background thread.
Result<SavedShardFile> SaveShard(FileSystem& files, const std::string& folder,
                                 const ShardFileHeader& header, const ShardSnapshot& snapshot);

// Reads the files that a manifest of this folder names: presence, length, checksum, structure and
// identity of each. DataLoss names the first thing that is wrong.
Status VerifyFiles(FileSystem& files, const std::string& folder,
                   const checkpoint::Manifest& manifest);

// The same of one of them.
Status VerifyFile(FileSystem& files, const std::string& folder,
                  const checkpoint::Manifest& manifest, int index);

// Makes the files of manifest.version() a checkpoint. Requires that all of manifest.files() are
// durable, and in the order of their shards. Fills manifest.name() in. Internal where no manifest
// may say that.
Status WriteManifest(FileSystem& files, const std::string& folder,
                     const checkpoint::Manifest& manifest);

// NotFound when the folder is no checkpoint; DataLoss when the manifest is damaged or another's.
Result<checkpoint::Manifest> ReadManifest(FileSystem& files, const std::string& folder,
                                          const std::string& name);

// The same of a manifest's text, wherever it came from. path: for messages.
Result<checkpoint::Manifest> ParseManifest(const std::string& text, const std::string& path,
                                           const std::string& name);
// No manifest is longer.
constexpr uint64_t kManifestLimitBytes = 16 << 20;

// Names of the checkpoints, damaged or not, newest first; none when the folder does not exist.
Result<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& folder);
// The first of them; NotFound when there is none.
Result<std::string> FindLatest(FileSystem& files, const std::string& folder);

// Reads all of a checkpoint: manifest, and presence, length, checksum, structure and identity of
// each file. DataLoss (NotFound: no such checkpoint) names the first thing that is wrong.
Result<checkpoint::Manifest> VerifyCheckpoint(FileSystem& files, const std::string& folder,
                                              const std::string& name);

struct VerifiedCheckpoint {
  std::string name;
  checkpoint::Manifest manifest;
  std::vector<std::string> refused;  // what is wrong with each newer one
};
// The newest checkpoint that verifies. NotFound when there is none: the message says what is wrong
// with each that there is.
Result<VerifiedCheckpoint> NewestVerified(FileSystem& files, const std::string& folder);

// What a checkpoint holds for positions in `wanted`, whichever servers wrote it, each array cut to
// `wanted`. What is missing is for the caller to see. DataLoss names what is damaged.
Result<ShardSnapshot> ReadSnapshot(FileSystem& files, const std::string& folder,
                                   const checkpoint::Manifest& manifest, Range wanted);

// What pruning leaves.
struct Retention {
  int newest = 1;         // at least 1
  std::string best = "";  // and the best one, by checkpoint.best
  int64_t verified = -1;  // a version that is known to verify
};

// Called when `committed` has become a checkpoint. Of the checkpoints up to it, deletes all but the
// newest, the newest that verifies, and the best with the newest that waits for its evaluation and
// so may be better; and older folders that never became one;
// and checkpoints of later versions: they are of a past that the job went back from, and would else
// pass for the latest. Folders of later versions without a manifest are being written, and stay.
// Deletes nothing when no checkpoint up to `committed` verifies. Returns the names of what it
// deleted.
Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep, int64_t committed);
// The same for the newest checkpoint that there is.
Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep);

// Renames a folder that holds checkpoints, for a job that starts anew: `<folder>.old`, in place of
// the one that was set aside before. Whether there was any; a folder without is left as it is, so
// that trying to start twice loses nothing.
Result<bool> SetCheckpointsAside(FileSystem& files, const std::string& folder);

// Moves what is of versions after `version` to `<folder>.old`, for a job that goes on from that one
// though there are later ones: whoever starts or goes back from then on must not meet them. How
// many there were.
Result<int> SetLaterAside(FileSystem& files, const std::string& folder, int64_t version);

}  // namespace kumo
