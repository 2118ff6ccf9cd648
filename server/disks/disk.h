// A server's disk: the files of its job's checkpoints, and the generation that is in use.
//
// The methods block while they read or write. Used by one thread at a time: the driver runs them on
// a thread of the disk's own, one after the other, so a manifest that is being written is there for
// whatever was asked for after it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "server/disks/piece_writer.h"
#include "server/protocol/actions.h"

namespace kumo {

class Disk {
 public:
  // files is borrowed for life.
  Disk(FileSystem* files, const Experiment& experiment);

  // What each action asks for (server/protocol/actions.h), with the errors of reading and writing
  // files.
  Result<SavedShardFile> Save(const SaveAction& save);
  Result<ShardSnapshot> Restore(const RestoreAction& restore);
  Result<std::optional<checkpoint::Manifest>> Choose(const ChooseCheckpointAction& choose);
  void Reserve(const ReserveGenerationAction& reserve);
  // Reads the files first: what their servers have said of them must be so. Also removes the
  // checkpoints that are kept no longer.
  Status Commit(checkpoint::Manifest manifest);
  void KeepEvaluation(const KeepEvaluationAction& keep);
  // Where each server has a disk of its own. Answer fills in the rest of a FILE or a CHECKPOINTS.
  void Answer(Message* reply);
  Result<std::vector<int>> Check(const CheckFilesAction& check);
  Status Write(const WritePieceAction& write) { return pieces_.Write(write); }
  void KeepManifest(const KeepManifestAction& keep);
  void Enter(const EnterGenerationAction& enter);

  // The token that output.directory has (output_lock.h); 0: none.
  uint64_t FolderToken() const;

  // Whether what a job that is done has made is still there. token: what output.directory had when
  // it began; 0: not known. Unavailable, naming what was removed.
  Status CheckResults(uint64_t token) const;

  // Puts the job's last checkpoint where output.final_model says, if it does, and returns its path
  // there, or else its own. The errors of PutFinalModel (final_model.h).
  Result<std::string> LeaveModel(int64_t version) const;

  // The checkpoint that was evaluated best, by checkpoint.best. NotFound where there is none.
  Result<checkpoint::Manifest> Best() const;
  const std::string& folder() const { return folder_; }  // of the checkpoints

 private:
  void Prune(int64_t verified = -1);

  FileSystem* const files_;
  const Experiment experiment_;
  const std::string folder_;
  PieceWriter pieces_;
  int64_t committed_ = -1;  // the last version with a manifest of ours
};

}  // namespace kumo
