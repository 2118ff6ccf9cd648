// Actions: requests of a server's state machines to their driver, and the driver's answers. The
// machines do no I/O; each call returns the actions that follow from it, in order.
//
// Two drivers carry them out: server/service (ZeroMQ, threads, disk) and tests/sim (virtual time).
// Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct ChunkWork;  // chunk_work.h

// Interval between two ticks of a server's state machines while they have something to do.
inline constexpr TimeUs kServerTick = 100 * kMillisecond;

// --- Messages and arithmetic.

struct SendAction {
  PeerName to;
  Message message;
};

// Read the token that output.directory has now, fill it in (Hello.folder), and send the hello to
// server 0.
struct JoinAction {
  SendAction hello;
};

// Run work->Run() on any thread, then call ServerNode::OnComputed with the same work.
struct ComputeAction {
  std::shared_ptr<ChunkWork> work;
};

// --- Checkpoints.

// Write the shard's file of a checkpoint durably, beside the training; then call OnSaved.
struct SaveAction {
  ShardFileHeader header;
  int attempt = 0;  // SaveOrder::attempt of the order that was followed; 0: saved at a round's end
  ShardSnapshot snapshot;
};

// Read the range `wanted` of a checkpoint, verified; then call OnRestored.
struct RestoreAction {
  uint32_t generation = 0;
  std::string checkpoint;
  Range wanted;              // positions in the layout
  int64_t version = 0;       // of the checkpoint
  Status fetched{};          // private disks: why the missing files could not be fetched; else ok
  ParameterLayout layout{};  // of the job; the checkpoint's may have other factors
};

// The job goes back to a checkpoint. After all manifests that are being written: make `generation`
// durable, so that no later process uses it again; find the newest checkpoint that verifies and is
// not newer than `newest`; answer with CheckpointChosen.
struct ChooseCheckpointAction {
  uint32_t generation = 0;
  int64_t newest = 0;
};

// A server fetches its shard from another server, and the job goes on where it is. Make
// `generation` durable, as above; answer with GenerationReserved.
struct ReserveGenerationAction {
  uint32_t generation = 0;
};

// All files of a checkpoint are durable. Write its manifest; answer with CheckpointCommitted.
struct CommitAction {
  checkpoint::Manifest manifest;
};

// The validation figures of a version are known. Write them into the version's manifest if there
// is one of generation `since` or a later one; answer with EvaluationKept.
struct KeepEvaluationAction {
  int64_t version = 0;
  uint32_t since = 0;
  checkpoint::Evaluation evaluation;
};

// The checkpoint of a version could not be saved, and is given up. Remove what is left of it.
struct DropCheckpointAction {
  int64_t version = 0;
};

// The job has passed all checks, and training is about to begin in this process. Open the curves;
// if checkpoint.resume says so, move the results that the job does not go on from to the earlier
// runs first (server/disks/earlier_runs.h). Answer with RunBegun.
struct BeginRunAction {
  uint32_t generation = 0;
  MetricList metrics;  // of the job; none if a server 0 that was started again has no spec yet
};

// --- Servers with disks of their own (checkpoint.disks = private; server/disks).

// Fill in the disk's part of the reply (Disk::Answer), then send the reply.
struct AnswerFromDiskAction {
  SendAction reply;
};
// Compare files of a checkpoint with its manifest; answer with FilesChecked.
struct CheckFilesAction {
  uint64_t fetch = 0;
  checkpoint::Manifest manifest;
  std::vector<int> wanted;  // indices into manifest.files
};
// Append a piece to a file of a checkpoint; answer with PieceWritten. Pieces come in order. With
// the last one the file appears under its name, if size and checksum are right.
struct WritePieceAction {
  uint64_t fetch = 0;
  int64_t version = 0;
  checkpoint::File file;
  uint64_t offset = 0;
  Payload bytes;
};
// This server's files of a complete checkpoint are on its disk. Write the manifest beside them.
struct KeepManifestAction {
  checkpoint::Manifest manifest;
  bool prune = true;  // and remove checkpoints beyond checkpoint.keep
};
// The server takes part in a generation. Make its number durable. anew: the job begins in this
// generation; move checkpoints of another job aside.
struct EnterGenerationAction {
  uint32_t generation = 0;
  bool anew = false;
};

// --- Facts for the curves, the progress line and the page. Server 0 only.

// The job went back; recorded facts of later rounds do not count any more.
struct WentBackAction {
  int64_t version = 0;  // -1: no recorded fact counts
  int64_t samples = 0;  // that the version was trained on; -1 likewise
  std::string why;
};
// This process has taken the place of a server 0 that died, and the job goes on from a version;
// facts that the former process recorded of later rounds do not count.
struct WentOnAction {
  int64_t version = 0;
  int64_t samples = 0;
};
struct WorkerLostAction {
  std::string what;  // "worker-1 on alpha is lost: its connection was closed"
};
// Checkpoints can no longer be saved, or can be saved again.
struct SavingHealthAction {
  int64_t version = 0;  // whose checkpoint failed, or was saved again
  std::string why;      // "": saved again
  int64_t last = -1;    // version of the newest complete checkpoint; -1: there is none
};
// The job began with weights of another one. The texts are printable.
struct StartedFromAction {
  checkpoint::Origin origin;
};
struct RoundClosedAction {
  int64_t round = 0;
  int64_t samples = 0;  // of the round; `sums` may be of fewer (JobPlan::MeasuredSamples)
  MetricSums sums;
  MetricList metrics;  // of these sums
};
struct CurvePointAction {
  int64_t version = 0;  // made by the point's last round
  int64_t samples = 0;  // that the version was trained on
  int epoch = 0;        // counted from 0
  MetricList metrics;
  MetricSums train;                     // over the rounds since the previous point
  std::optional<double> learning_rate;  // of the last round
};
struct EpochEvaluatedAction {
  int epoch = 0;  // counted from 0
  MetricList metrics;
  MetricSums train;
  MetricSums validation;
  std::vector<MetricFigure> classes;  // of the validation
  int64_t version = 0;                // that the epoch ended with
  int64_t samples = 0;                // that the version was trained on
  std::string trouble;                // why the training gets nowhere; "": it does
  std::string early_stop;             // why the job ends early; "": it does not
};

// An evaluation brought a picture.
struct EvaluationPictureAction {
  int64_t version = 0;  // that was evaluated
  int64_t samples = 0;  // that the version was trained on
  std::string png;
};

// The process has nothing left to do: ok if the job is done, else the reason.
struct ExitAction {
  Status status;
};

using ServerAction =
    std::variant<SendAction, JoinAction, ComputeAction, SaveAction, RestoreAction,
                 ChooseCheckpointAction, ReserveGenerationAction, CommitAction,
                 KeepEvaluationAction, AnswerFromDiskAction, CheckFilesAction, WritePieceAction,
                 KeepManifestAction, EnterGenerationAction, DropCheckpointAction, BeginRunAction,
                 WorkerLostAction, SavingHealthAction, WentBackAction, WentOnAction,
                 StartedFromAction, RoundClosedAction, CurvePointAction, EpochEvaluatedAction,
                 EvaluationPictureAction, ExitAction>;
using ServerActions = std::vector<ServerAction>;

// --- The driver's answers.

// To CommitAction, before the last answer: a further part of the other servers' files is on server
// 0's disk (private_disks.h).
struct FilesCollected {};
// To CommitAction.
struct CheckpointCommitted {
  int64_t version = 0;
  Status status;
};
// To ChooseCheckpointAction; nullopt if there is no checkpoint to go on from.
struct CheckpointChosen {
  Result<std::optional<checkpoint::Manifest>> checkpoint;
};
// To ReserveGenerationAction.
struct GenerationReserved {};
// To KeepEvaluationAction, also if writing failed.
struct EvaluationKept {};
// To BeginRunAction.
struct RunBegun {
  Status status;
};
// Unasked: curves cannot be written any more, or can be written again.
struct CurvesHealth {
  std::string failure;  // "": written again
};
// The answers to the coordinator.
using DiskAnswer = std::variant<CheckpointCommitted, FilesCollected, CheckpointChosen,
                                GenerationReserved, EvaluationKept, RunBegun, CurvesHealth>;

// To CheckFilesAction: the files among `wanted` that have to be fetched, or the error of a disk
// that cannot be read.
struct FilesChecked {
  uint64_t fetch = 0;
  Result<std::vector<int>> missing;
};
// To WritePieceAction. DataLoss: the whole file differs from the manifest.
struct PieceWritten {
  uint64_t fetch = 0;
  uint64_t offset = 0;
  Status status;
};
// The answers to server/disks.
using FilesAnswer = std::variant<FilesChecked, PieceWritten>;

// --- The context of one call.

// Step context: the time of one call into a server's state machines, and the actions that follow
// from it. The call hands it down to all machines that take part, so that none keeps a time or a
// list of actions between two calls.
struct StepContext {
  TimeUs now = 0;
  ServerActions actions;  // in the order in which they are to be carried out

  void Do(ServerAction action) { actions.push_back(std::move(action)); }
};

}  // namespace kumo
