// What a server's state machines ask their driver to do. They return these instead of doing I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/snapshot.h"
#include "common/parameter_layout.h"
#include "common/status.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"
#include "server/chunk_work.h"

namespace kumo {

struct SendAction {
  PeerName to;
  Message message;
};

// Says that a message with this header has arrived, by what tells it from others: type, round,
// partition, chunk, slot and attempt. held: it would be lost should this server die; the sender is
// to keep it until it hears otherwise.
SendAction Acknowledgement(const PeerName& to, const wire::Header& header, bool held = false);

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
};

// The job goes back. When every manifest that is being written is there: make `generation` durable,
// so that no later process uses it again, find the newest checkpoint that verifies and is not newer
// than `newest`, and call OnChosen.
struct ChooseCheckpointAction {
  uint32_t generation = 0;
  int64_t newest = 0;
};

// What a server held is fetched from another one, and the job goes on where it is: make
// `generation` durable, as above, and call OnClaimed.
struct ClaimGenerationAction {
  uint32_t generation = 0;
};

// All files of a checkpoint are durable: write its manifest, then call OnCommitted.
struct CommitAction {
  checkpoint::Manifest manifest;
};

// For the curves and the progress line.
struct WentBackAction {
  int64_t version = 0;  // what is known about later rounds does not count any more; -1: all of it
  std::string why;
};
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
    std::variant<SendAction, ComputeAction, SaveAction, RestoreAction, ChooseCheckpointAction,
                 ClaimGenerationAction, CommitAction, WentBackAction, RoundClosedAction,
                 EpochEvaluatedAction, ExitAction>;
using ServerActions = std::vector<ServerAction>;

}  // namespace kumo
