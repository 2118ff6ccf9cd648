// Checkpoints of a job: folders below <output>/checkpoints.
//
//   round-000000001200/                               at version 1200 of the weights
//     shard-00-of-02.generation-1                     one file per server (shard_file.h)
//     shard-01-of-02.generation-1
//     MANIFEST                                        text protobuf kumo.checkpoint.Manifest; the
//                                                     last line is "# crc32c <8 hex digits>", the
//                                                     CRC-32C of the lines before
//
// Each server writes its file; when all files are durable, the coordinator atomically writes the
// manifest, which makes the folder a checkpoint. A folder without a manifest is no checkpoint,
// whatever it contains. The generation in the file names lets a job that rolled back and reached
// the same round again write beside the files of the old manifest until the new manifest replaces
// it.
//
// Below, `folder` is <output>/checkpoints and `name` a checkpoint in it. Stateless functions. One
// process at a time may write or prune; readers need no lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// "round-%012d" for a version of the weights.
std::string CheckpointName(int64_t version);
// The version in such a name; -1 if it is no checkpoint's name.
int64_t VersionOf(const std::string& name);
// The file name of server `shard`: "shard-00-of-02.generation-1".
std::string ShardFileName(uint32_t shard, uint32_t shards, uint32_t generation);

// The numbers in such a name; none if it is malformed.
struct ShardFileNumbers {
  uint32_t shard = 0, shards = 0, generation = 0;
};
std::optional<ShardFileNumbers> ParseShardFileName(const std::string& name);
// True if a file may contain positions of this range of the flat vector.
bool IsAbout(const checkpoint::File& file, Range range);

// Writes a server's file of the checkpoint at header.version, creating the folders if necessary.
// Blocks until the file is durable: call it from a background thread.
Result<SavedShardFile> SaveShard(FileSystem& files, const std::string& folder,
                                 const ShardFileHeader& header, const ShardSnapshot& snapshot);

// Verifies the files of a manifest in this folder: presence, length, checksum, structure and
// identity of each. DataLoss names the first fault.
Status VerifyFiles(FileSystem& files, const std::string& folder,
                   const checkpoint::Manifest& manifest);

// Verifies one of these files.
Status VerifyFile(FileSystem& files, const std::string& folder,
                  const checkpoint::Manifest& manifest, int index);

// Names of the checkpoints, damaged or not, newest first; empty if the folder does not exist.
Result<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& folder);
// The newest of them; NotFound if there is none.
Result<std::string> FindLatest(FileSystem& files, const std::string& folder);

// Verifies a whole checkpoint: its manifest and files. DataLoss (NotFound: no such checkpoint)
// names the first fault.
Result<checkpoint::Manifest> VerifyCheckpoint(FileSystem& files, const std::string& folder,
                                              const std::string& name);

struct VerifiedCheckpoint {
  std::string name;
  checkpoint::Manifest manifest;
  std::vector<std::string> refused;  // the fault of each newer checkpoint
};
// The newest checkpoint that verifies. NotFound if there is none, with the fault of each
// checkpoint.
Result<VerifiedCheckpoint> NewestVerified(FileSystem& files, const std::string& folder);

// A checkpoint that a user has named, as it was read or verified: if it is damaged, the message
// also names the newest checkpoint in `folder` that verifies.
Result<checkpoint::Manifest> OrNewestValid(Result<checkpoint::Manifest> manifest, FileSystem& files,
                                           const std::string& folder);

// Returns the arrays of a checkpoint for positions in `wanted`, whichever servers wrote them, cut
// to `wanted`. Missing positions are for the caller to detect. DataLoss names damaged files.
Result<ShardSnapshot> ReadSnapshot(FileSystem& files, const std::string& folder,
                                   const checkpoint::Manifest& manifest, Range wanted);

// The checkpoints that pruning keeps.
struct Retention {
  int newest = 1;         // at least 1
  std::string best = "";  // also the best one, by checkpoint.best
  int64_t verified = -1;  // a version that is known to verify
};

// Prunes after `committed` has become a checkpoint; returns the names of the deleted folders. Of
// the checkpoints up to `committed` it keeps the newest ones, the newest that verifies, the newest
// that has not diverged (health.h), the best, and the newest that awaits its evaluation (it may
// become the best). It deletes older folders without a manifest, and checkpoints of later versions:
// they belong to a past from which the job rolled back, and would pass for the latest. Folders of
// later versions without a manifest are being written and stay. Deletes nothing if no checkpoint up
// to `committed` verifies.
Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep, int64_t committed);
// The same for the newest existing checkpoint.
Result<std::vector<std::string>> PruneCheckpoints(FileSystem& files, const std::string& folder,
                                                  const Retention& keep);

// Removes what is left of a checkpoint of `version` that has no manifest, so that a full disk has
// room for the next one.
Status RemoveUnfinished(FileSystem& files, const std::string& folder, int64_t version);

}  // namespace kumo
