// Disk of a server: the files of its job's checkpoints, and the generation that is in use.
//
// The methods block while they read or write. One thread at a time: the driver runs them on a
// thread of their own, one after the other, so a request sees the results of all earlier ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"
#include "server/disks/checkpoint_survey.h"
#include "server/disks/disk_files.h"
#include "server/protocol/actions.h"

namespace kumo {

// Results that a run has moved to the earlier runs at its beginning.
struct SetAside {
  std::string folder;  // "": nothing
  bool whole = false;  // the whole run until now; else the rounds after the one to go on from
};

class Disk {
 public:
  // files is borrowed for life.
  Disk(FileSystem* files, const Experiment& experiment);

  // The actions of the same names (server/protocol/actions.h). Errors: of reading and writing
  // files.
  Result<SavedShardFile> Save(const SaveAction& save);
  Result<ShardSnapshot> Restore(const RestoreAction& restore);
  Result<std::optional<checkpoint::Manifest>> Choose(const ChooseCheckpointAction& choose);
  void Reserve(const ReserveGenerationAction& reserve);
  // Reads the files first and compares them with the manifest. Then removes the checkpoints beyond
  // checkpoint.keep.
  Status Commit(checkpoint::Manifest manifest);
  void KeepEvaluation(const KeepEvaluationAction& keep);
  void Drop(const DropCheckpointAction& drop);
  // run: name of this run; "": none.
  Result<SetAside> BeginRun(const std::string& run);
  // For servers with disks of their own.
  // Settings of a survey of the other servers' disks, for server 0 at its start; nullopt if none is
  // needed: a single server, a shared disk, a job that starts anew, or a disk that has lost
  // nothing.
  std::optional<SurveySettings> NeededSurvey(const JobIdentity& identity) const;
  // Answer fills in the rest of a FILE or a CHECKPOINTS.
  void Answer(Message* reply);
  Result<std::vector<int>> Check(const CheckFilesAction& check);
  Status Write(const WritePieceAction& write) { return pieces_.Write(write); }
  void KeepManifest(const KeepManifestAction& keep);
  void Enter(const EnterGenerationAction& enter);

  // The token in output.directory (output_lock.h); 0: none.
  uint64_t FolderToken() const;

  // Checks that the results of a job that is done are still there. token: of output.directory when
  // the job began; 0: not known. Unavailable names the folder that was removed.
  Status CheckResults(uint64_t token) const;

  // Copies the job's last checkpoint to output.final_model, if that is set, and returns the copy's
  // path, or else the checkpoint's. Errors: of PutFinalModel (final_model.h).
  Result<std::string> LeaveModel(int64_t version) const;

  // The best checkpoint by the metric checkpoint.best. NotFound if there is none.
  Result<checkpoint::Manifest> Best() const;
  const std::string& folder() const { return folder_; }  // of the checkpoints

 private:
  void Prune(int64_t verified = -1);

  FileSystem* const files_;
  const Experiment experiment_;
  const std::string folder_;
  PieceWriter pieces_;
  int64_t committed_ = -1;  // the last version whose manifest this process has written or chosen
};

}  // namespace kumo
