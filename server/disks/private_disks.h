// Where each server has a disk of its own (checkpoint.disks = private): brings each file of the
// checkpoints to the disks that are to have it.
//
// Server 0's disk has every checkpoint whole. A server saves its part on its own disk; before
// server 0 writes the manifest it fetches the other servers' files, so that it reads them itself as
// with a shared folder, and so that any number of servers can go on from there. Every other server
// then keeps a copy of the manifest beside its own file, and server 1, where versions are kept
// twice, server 0's file too: whichever single disk is lost, the others have what was on it
// (survey.h is how server 0's gets it back).
//
// A server that is to restore gets the manifest from server 0, whatever its own disk says, and
// those files that it lacks.
//
// What the machines ask of the disk, and that needs files first, is held back until they are here.
// Owned by a ServerNode; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "common/settings/experiment.h"
#include "server/disks/collection.h"
#include "server/protocol/role.h"

namespace kumo {

class PrivateDisks {
 public:
  // Of server `index`. role: borrowed for life; is told of a checkpoint that cannot be whole.
  PrivateDisks(int index, int servers, const Experiment& experiment, Role* role);

  // What another server than 0 hears from server 0. ours: of its generation.
  void OnFromServer0(const Message& message, bool ours, StepContext* context);
  // A FETCH_FILE, FILE or LIST_CHECKPOINTS. Who is none of the servers gets no answer.
  void OnMessage(const PeerName& from, const Message& message, StepContext* context);
  // To CheckFilesAction and WritePieceAction.
  void OnAnswer(const FilesAnswer& answer, StepContext* context);
  void Tick(StepContext* context);
  // The generation is over, and what was under way in it. An evaluation is kept nevertheless.
  void Clear(StepContext* context);
  // At the end of each call: takes out of the turn what has to wait for files.
  void HoldBack(StepContext* context);

  bool busy() const { return manifest_fetch_ || collection_; }

 private:
  // Another server keeps its part of a complete checkpoint.
  struct Keep {
    int64_t version = 0;
  };
  // Server 0: CommitAction, and what comes after it; another one: RestoreAction or Keep.
  using Task = std::variant<CommitAction, KeepEvaluationAction, RestoreAction, Keep>;

  void OnComplete(int64_t version, StepContext* context);
  bool IsServer(const PeerName& peer) const;
  void Answer(const PeerName& to, const Message& asked, StepContext* context) const;
  // The task in front, which waits for nobody yet.
  void Begin(StepContext* context);
  void Collect(checkpoint::Manifest manifest, std::vector<int> wanted, StepContext* context);
  void OnManifest(StepContext* context);
  std::vector<int> Wanted(const checkpoint::Manifest& manifest) const;
  // What the task in front waited for is here, or why it cannot be had.
  void GoAlong(StepContext* context);
  void Finish(const Status& status, StepContext* context);
  void HoldBackLeaving(StepContext* context);

  const int index_, servers_;
  const bool keeps_server_0s_;  // files
  const uint64_t piece_bytes_;
  const TimeUs leaves_within_;  // of the job's end
  Role* const role_;
  std::deque<Task> tasks_;
  std::optional<FileFetch> manifest_fetch_;
  std::optional<Collection> collection_;
  uint64_t collections_ = 0;
  int64_t kept_ = -1;         // the last checkpoint that was to be kept
  TimeUs leaves_since_ = -1;  // -1: it does not
  ServerActions released_;    // may be carried out now
};

}  // namespace kumo
