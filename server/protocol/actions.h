// What a server's state machines ask their driver to do. They return these instead of doing I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"
#include "server/shard/chunk_work.h"

namespace kumo {

struct SendAction {
  PeerName to;
  Message message;
};

// Say hello to server 0 with the token that output.directory has just now (Hello.folder).
struct JoinAction {
  SendAction hello;
};

// Run work->Run() on any thread, then call ServerNode::OnComputed with it.
struct ComputeAction {
  std::shared_ptr<ChunkWork> work;
};

// Write the shard's file of a checkpoint durably beside the training, then call OnSaved.
struct SaveAction {
  ShardFileHeader header;
  int attempt = 0;  // of the coordinator's order; 0: at its round's end
  ShardSnapshot snapshot;
};

// Read what a checkpoint holds for `wanted`, verified, then call OnRestored.
struct RestoreAction {
  uint32_t generation = 0;
  std::string checkpoint;
  Range wanted;
  int64_t version = 0;  // of the checkpoint
  Status fetched{};     // where servers have disks of their own: what was missing could be had
};

// The job goes back. When every manifest that is being written is there: make `generation` durable,
// so that no later process uses it again, find the newest checkpoint that verifies and is not newer
// than `newest`, and answer with CheckpointChosen.
struct ChooseCheckpointAction {
  uint32_t generation = 0;
  int64_t newest = 0;
};

// What a server held is fetched from another one, and the job goes on where it is: make
// `generation` durable, as above, and answer with GenerationReserved.
struct ReserveGenerationAction {
  uint32_t generation = 0;
};

// All files of a checkpoint are durable: write its manifest, then answer with
// CheckpointCommitted.
struct CommitAction {
  checkpoint::Manifest manifest;
};

// Where servers have disks of their own (server/disks/):
//
// Fill in what the disk has of what the message is about (Disk::Answer), then send it.
struct AnswerFromDiskAction {
  SendAction reply;
};
// Answer with FilesChecked: which of a checkpoint's files are not here as its manifest says.
struct CheckFilesAction {
  uint64_t fetch = 0;
  checkpoint::Manifest manifest;
  std::vector<int> wanted;  // places in the manifest
};
// Append a piece to a file of a checkpoint, which appears under its name with its last one when
// size and checksum are right; answer with PieceWritten. The pieces come in order.
struct WritePieceAction {
  uint64_t fetch = 0;
  int64_t version = 0;
  checkpoint::File file;
  uint64_t offset = 0;
  Payload bytes;
};
// What this server keeps of a complete checkpoint is here: write its manifest beside it.
struct KeepManifestAction {
  checkpoint::Manifest manifest;
  bool prune = true;  // and remove the checkpoints that are kept no longer
};
// A server takes part in a generation: make its number durable. anew: the job begins in it, so
// what this disk has is of another one, and is set aside.
struct EnterGenerationAction {
  uint32_t generation = 0;
  bool anew = false;
};

// The validation set's figures of a version are known: write them into its manifest, where there is
// one of generation `since` or a later one, and answer with EvaluationKept.
struct KeepEvaluationAction {
  int64_t version = 0;
  uint32_t since = 0;
  checkpoint::Evaluation evaluation;
};

// The curves and the progress line want to know of these.
struct WentBackAction {
  // What is known about later rounds does not count any more; -1: nothing does.
  int64_t version = 0;
  int64_t samples = 0;  // that the version was trained on; -1: likewise
  std::string why;
};
// This process has taken the place of a server 0 that died, and the job goes on from a version:
// what the other one recorded of later rounds does not count.
struct WentOnAction {
  int64_t version = 0;
  int64_t samples = 0;
};
// The job began with weights of another one; the texts are printable.
struct StartedFromAction {
  checkpoint::Origin origin;
};
struct RoundClosedAction {
  int64_t round = 0;
  MetricSums sums;
  MetricList metrics;  // of these
};
struct CurvePointAction {
  int64_t version = 0;  // that the point's last round made
  int64_t samples = 0;  // that it was trained on
  int epoch = 0;        // counted from 0
  MetricList metrics;
  MetricSums train;                     // of these, over the rounds since the point before
  std::optional<double> learning_rate;  // of the last round
};
struct EpochEvaluatedAction {
  int epoch = 0;  // counted from 0
  MetricList metrics;
  MetricSums train;  // of these
  MetricSums validation;
  int64_t version = 0;  // that the epoch ended with
  int64_t samples = 0;  // that it was trained on
};

// The process has nothing left to do: ok when the job is done, else why not.
struct ExitAction {
  Status status;
};

using ServerAction =
    std::variant<SendAction, JoinAction, ComputeAction, SaveAction, RestoreAction,
                 ChooseCheckpointAction, ReserveGenerationAction, CommitAction,
                 KeepEvaluationAction, AnswerFromDiskAction, CheckFilesAction, WritePieceAction,
                 KeepManifestAction, EnterGenerationAction, WentBackAction, WentOnAction,
                 StartedFromAction, RoundClosedAction, CurvePointAction, EpochEvaluatedAction,
                 ExitAction>;
using ServerActions = std::vector<ServerAction>;

}  // namespace kumo
