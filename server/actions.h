// What a server's state machines ask their driver to do. They return these instead of doing I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/checkpoint/snapshot.h"
#include "common/status.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"
#include "server/chunk_work.h"

namespace kumo {

struct SendAction {
  PeerName to;
  Message message;
};

// Run work->Run() on any thread, then call ServerNode::OnComputed with it.
struct ComputeAction {
  std::shared_ptr<ChunkWork> work;
};

// Write the shard's file of a checkpoint durably beside the training, then call OnSaved.
struct SaveAction {
  ShardSnapshot snapshot;
};

// Read this shard's part of a checkpoint, verified, then call OnRestored.
struct RestoreAction {
  std::string checkpoint;
};

// All files of a checkpoint are durable: write its manifest, then call OnCommitted.
struct CommitAction {
  checkpoint::Manifest manifest;
};

// For the curves and the progress line.
struct RoundClosedAction {
  int64_t round = 0;
  wire::Metrics metrics;
};
struct EpochEvaluatedAction {
  int epoch = 0;  // counted from 0
  wire::Metrics train;
  wire::Metrics validation;
};

// The process has nothing left to do: ok when the job is done, else why not.
struct ExitAction {
  Status status;
};

using ServerAction =
    std::variant<SendAction, ComputeAction, SaveAction, RestoreAction, CommitAction,
                 RoundClosedAction, EpochEvaluatedAction, ExitAction>;
using ServerActions = std::vector<ServerAction>;

}  // namespace kumo
