#include "server/disks/disk.h"

#include <utility>

#include <glog/logging.h>

#include "common/base/process/output_lock.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/checkpoint/final_model.h"
#include "common/checkpoint/relocation.h"
#include "common/checkpoint/resume_point.h"
#include "server/disks/earlier_runs.h"
#include "server/disks/generation_file.h"

namespace kumo {

Disk::Disk(FileSystem* files, const Experiment& experiment)
    : files_(files),
      experiment_(experiment),
      folder_(JoinPath(experiment.output.directory, "checkpoints")),
      pieces_(files, folder_) {}

Result<SavedShardFile> Disk::Save(const SaveAction& save) {
  return SaveShard(*files_, folder_, save.header, save.snapshot);
}

// A snapshot of the positions that the server has now: the checkpoint may have been saved by
// another number of servers (its files are cut and joined), with another order of tensors
// (Relocation), or with another optimiser (Adapt).
Result<ShardSnapshot> Disk::Restore(const RestoreAction& restore) {
  KUMO_RETURN_IF_ERROR(restore.fetched);
  KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest,
                        ReadManifest(*files_, folder_, restore.checkpoint));
  KUMO_ASSIGN_OR_RETURN(const Relocation relocation, Relocation::Make(manifest, restore.layout));
  const Range stored = relocation.Stored(restore.wanted);
  KUMO_ASSIGN_OR_RETURN(ShardSnapshot read, ReadSnapshot(*files_, folder_, manifest, stored));
  KUMO_RETURN_IF_ERROR(Adapt(manifest, experiment_, &read));
  relocation.Move(restore.wanted, &read);
  return read;
}

Result<std::optional<checkpoint::Manifest>> Disk::Choose(const ChooseCheckpointAction& choose) {
  // First: messages of the new generation may be sent after the answer. A process that starts after
  // a crash must not use its number again.
  KeepGeneration(*files_, experiment_, choose.generation);
  committed_ = -1;  // if the choice fails, nothing is pruned
  KUMO_ASSIGN_OR_RETURN(ResumePoint point, NewestToResume(*files_, experiment_, choose.newest));
  for (const std::string& skipped : point.skipped) LOG(ERROR) << "skips " << skipped;
  // Checkpoints of later rounds belong to the past from which the job went back. The next pruning
  // removes them: their rounds are trained and saved again.
  if (point.manifest) committed_ = point.manifest->version();
  return std::move(point.manifest);
}

void Disk::Reserve(const ReserveGenerationAction& reserve) {
  KeepGeneration(*files_, experiment_, reserve.generation);
}

Status Disk::Commit(checkpoint::Manifest manifest) {
  manifest.set_name(CheckpointName(manifest.version()));
  // The manifest makes the files a checkpoint, and older ones are then removed: so what the servers
  // reported as durable is read once before.
  KUMO_RETURN_IF_ERROR(VerifyFiles(*files_, folder_, manifest));
  KUMO_RETURN_IF_ERROR(WriteManifest(*files_, folder_, manifest));
  committed_ = manifest.version();
  Prune(committed_);
  return OkStatus();
}

void Disk::Prune(int64_t verified) {
  if (committed_ < 0) return;
  const auto& options = experiment_.checkpoint;
  const auto pruned =
      PruneCheckpoints(*files_, folder_, {options.keep, options.best, verified}, committed_);
  if (!pruned.ok()) LOG(WARNING) << pruned.status().message();
}

// A failure costs figures in a manifest only, so the training goes on.
void Disk::KeepEvaluation(const KeepEvaluationAction& keep) {
  const Status kept = WriteEvaluation(*files_, folder_, keep.version, keep.since, keep.evaluation);
  if (!kept.ok()) LOG(WARNING) << kept.message();
  if (!experiment_.checkpoint.best.empty()) Prune();  // the best checkpoint may be another one now
}

void Disk::Drop(const DropCheckpointAction& drop) {
  const Status dropped = RemoveUnfinished(*files_, folder_, drop.version);
  if (!dropped.ok()) LOG(WARNING) << dropped.message();
}

Result<SetAside> Disk::BeginRun(const std::string& run) {
  const std::string& output = experiment_.output.directory;
  SetAside aside;
  if (experiment_.checkpoint.resume.never()) {
    aside.whole = true;
    KUMO_ASSIGN_OR_RETURN(aside.folder, SetRunAside(*files_, output));
  } else if (const auto round = RoundToResume(experiment_)) {
    KUMO_ASSIGN_OR_RETURN(aside.folder, SetLaterRoundsAside(*files_, output, *round));
  }
  // Last: a server 0 that is started again for the same run moves nothing then, but goes on.
  KUMO_RETURN_IF_ERROR(MarkBegun(*files_, output, run));
  return aside;
}

// --- Servers with disks of their own.

void Disk::Answer(Message* reply) {
  wire::Header& header = reply->header;
  if (header.type() == wire::CHECKPOINTS) {
    *header.mutable_held_checkpoints() = HeldCheckpoints(*files_, folder_);
    const Result<uint32_t> generation = LastGeneration(*files_, experiment_);
    if (generation.ok()) header.mutable_held_checkpoints()->set_generation(*generation);
    return;
  }
  wire::FilePiece* const piece = header.mutable_file_piece();
  Result<Payload> bytes = ReadPiece(*files_, folder_, piece);
  if (bytes.ok()) {
    reply->payload = *std::move(bytes);
  } else {
    piece->set_failure(bytes.status().message());
  }
}

Result<std::vector<int>> Disk::Check(const CheckFilesAction& check) {
  std::vector<int> missing;
  for (const int file : check.wanted) {
    const Status status = VerifyFile(*files_, folder_, check.manifest, file);
    // The disk's or the machine's fault, not the file's: fetching the file would not help.
    const StatusCode code = status.code();
    if (code == StatusCode::kUnavailable || code == StatusCode::kResourceExhausted) return status;
    if (!status.ok()) missing.push_back(file);
  }
  return missing;
}

// A failure is only logged: the checkpoint is complete on server 0's disk.
void Disk::KeepManifest(const KeepManifestAction& keep) {
  // A server without a chunk has no file of the checkpoint, and so no folder yet.
  Status status =
      files_->CreateDirectories(JoinPath(folder_, CheckpointName(keep.manifest.version())));
  if (status.ok()) status = WriteManifest(*files_, folder_, keep.manifest);
  if (!status.ok()) {
    LOG(WARNING) << status.message();
    return;
  }
  if (!keep.prune) return;
  committed_ = keep.manifest.version();
  Prune(committed_);
}

// A survey waits for every other server, so it takes place only if this disk may have lost
// something: the checkpoint of the round to go on from, any checkpoint that does not verify, or the
// generation file, which every run leaves.
std::optional<SurveySettings> Disk::NeededSurvey(const JobIdentity& identity) const {
  if (!experiment_.checkpoint.HasPrivateDisks() || identity.servers < 2 ||
      experiment_.checkpoint.resume.never()) {
    return std::nullopt;
  }
  SurveySettings settings;
  settings.identity = identity;
  settings.piece_bytes = static_cast<uint64_t>(experiment_.cluster.chunk_kib) * 1024;
  settings.join_timeout = FromSeconds(experiment_.cluster.join_timeout_s);
  settings.only = RoundToResume(experiment_);
  if (settings.only) {
    const bool good = VerifyCheckpoint(*files_, folder_, CheckpointName(*settings.only)).ok();
    return good ? std::nullopt : std::optional(settings);
  }
  const auto names = ListCheckpoints(*files_, folder_);
  const auto newest = NewestVerified(*files_, folder_);
  if (newest.ok()) settings.newer_than = newest->manifest.version();
  const bool damaged = newest.ok() ? !newest->refused.empty() : names.ok() && !names->empty();
  if (HasGeneration(*files_, experiment_) && !damaged) return std::nullopt;
  return settings;
}

void Disk::Enter(const EnterGenerationAction& enter) {
  KeepGeneration(*files_, experiment_, enter.generation);
  // A job that begins goes on from no checkpoint, so all that lie here are another job's; unless
  // this process has saved one itself in the meantime.
  if (!enter.anew || committed_ >= 0) return;
  const Result<std::string> aside = SetRunAside(*files_, experiment_.output.directory);
  if (!aside.ok()) LOG(WARNING) << aside.status().message();
}

uint64_t Disk::FolderToken() const {
  return OutputLock::ReadHolder(*files_, experiment_.output.directory).token;
}

// A process may write for hours into a folder that was deleted: every write succeeds, and nothing
// is left. So the end of a job looks whether its folder is still the one at its path.
Status Disk::CheckResults(uint64_t token) const {
  const std::string last = JoinPath(folder_, CheckpointName(committed_));
  const bool saved = committed_ >= 0;
  if (saved && !ReadManifest(*files_, folder_, CheckpointName(committed_)).ok()) {
    return Unavailable("the job finished, but its checkpoint " + last +
                       " was removed or damaged during the run; start the job again");
  }
  if (token == 0 || FolderToken() == token) return OkStatus();
  return Unavailable("the job finished, but output.directory " + experiment_.output.directory +
                     " was removed or replaced during the run, with its curves and logs" +
                     (saved ? "; the last checkpoint is " + last : "; start the job again"));
}

Result<std::string> Disk::LeaveModel(int64_t version) const {
  const std::string& to = experiment_.output.final_model;
  const std::string name = CheckpointName(version);
  if (to.empty()) return JoinPath(folder_, name);
  const Result<std::string> put = PutFinalModel(*files_, folder_, name, to);
  if (put.ok()) return put;
  return put.status().WithContext("the job finished with the model " + JoinPath(folder_, name) +
                                  ", but the model was not copied to output.final_model " + to);
}

Result<checkpoint::Manifest> Disk::Best() const {
  return FindBest(*files_, folder_, experiment_.checkpoint.best);
}

}  // namespace kumo
