// Private disks: brings each file of the checkpoints to the disks that are to have it, if servers
// have disks of their own (checkpoint.disks = private).
//
// Invariants:
// - Server 0's disk has every checkpoint complete. A server saves its part on its own disk; before
//   server 0 writes the manifest, it fetches the other servers' files. So it can read and verify
//   them as with a shared folder, and any number of servers can go on from there.
// - Every other server then keeps a copy of the manifest beside its own file; and server 1, if
//   versions are kept twice, server 0's file too. So after the loss of any single disk, the others
//   have its content (checkpoint_survey.h restores server 0's).
// - A server that restores gets the manifest from server 0, whatever its own disk says, and the
//   files that it lacks.
//
// Actions of the machines that need files first are held back until the files are here, as tasks,
// one after the other.
//
// Owned by a ServerNode; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "common/settings/experiment.h"
#include "server/disks/file_fetch.h"
#include "server/protocol/role.h"

namespace kumo {

class PrivateDisks {
 public:
  // index: this server's. role: borrowed for life; is told if a checkpoint cannot be completed.
  PrivateDisks(int index, int servers, const Experiment& experiment, Role* role);

  // A message of server 0 to another server. ours: of this server's generation.
  void OnFromServer0(const Message& message, bool ours, StepContext* context);
  // A FETCH_FILE, FILE or LIST_CHECKPOINTS; ignored if the sender is not a server.
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  // The answer to a CheckFilesAction or WritePieceAction.
  void OnAnswer(const FilesAnswer& answer, StepContext* context);
  void Tick(StepContext* context);
  // The generation is over: drops its tasks, except evaluations, which are kept nevertheless.
  void Clear(StepContext* context);
  // At the end of each call: takes the actions that have to wait for files out of the context.
  void HoldBack(StepContext* context);

  bool busy() const { return manifest_fetch_ || collection_; }

 private:
  // A server other than 0 keeps its part of a complete checkpoint.
  struct Keep {
    int64_t version = 0;
  };
  // On server 0 CommitAction and KeepEvaluationAction, on others RestoreAction and Keep.
  using Task = std::variant<CommitAction, KeepEvaluationAction, RestoreAction, Keep>;

  void OnComplete(int64_t version, StepContext* context);
  bool IsServer(const PeerName& peer) const;
  void Answer(const PeerName& to, const Message& asked, StepContext* context) const;
  // Begins the first task, unless one is under way.
  void Begin(StepContext* context);
  void Collect(checkpoint::Manifest manifest, std::vector<int> wanted, StepContext* context);
  void OnManifest(StepContext* context);
  Result<std::vector<int>> Wanted(const checkpoint::Manifest& manifest) const;
  // Goes on with the first task if its files are here or cannot be had.
  void Advance(StepContext* context);
  void Finish(const Status& status, StepContext* context);
  void HoldBackLeaving(StepContext* context);

  const int index_, servers_;
  const bool keeps_server_0s_;  // keeps server 0's files too
  const uint64_t piece_bytes_;
  const TimeUs leaves_within_;  // after the job's end
  Role* const role_;
  std::deque<Task> tasks_;
  std::optional<FileFetch> manifest_fetch_;
  std::optional<Collection> collection_;
  uint64_t collections_ = 0;
  int64_t kept_ = -1;         // the last checkpoint that this server was told to keep
  TimeUs leaves_since_ = -1;  // -1: the server does not leave
  ServerActions released_;    // held back before, and to be carried out now
};

}  // namespace kumo
