// What a worker's session asks its driver to do, and what the driver hands back. The session
// returns actions instead of doing I/O or arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/codec/codec.h"
#include "common/job/job_plan.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct SendToServerAction {
  int server = 0;
  Message message;
};
// Compute the initial weights, then call OnInitialised.
struct InitialiseAction {};
struct InitialWeights {
  std::vector<Payload> chunks;
  std::optional<checkpoint::Origin> origin;  // where some are another job's
};
// Decode a chunk's payload into the base weights (vector START) or into the weights that are
// evaluated (WEIGHTS).
struct InstallAction {
  int chunk = 0;
  wire::Vector vector = wire::START;
  const Codec* codec = nullptr;
  Payload payload;
};
// Take over what a partition carries, before its first block here. It carries nothing in arrays and
// chunks that are not named.
struct AdoptAction {
  int partition = 0;
  struct Array {
    int chunk = 0;
    int index = 0;    // of CarriedArrays
    Payload payload;  // float32
  };
  std::vector<Array> arrays;
};
// Train the partition's block of a round from the base weights; OnCoded for what of it is coded
// early, then OnTrained.
struct TrainAction {
  int partition = 0;
  RoundPlan round;
  bool save_state = false;  // also return what the partition carries afterwards
};
// Evaluate the partition's slice of the validation set; then OnEvaluated.
struct EvaluateAction {
  int partition = 0;
  int64_t version = 0;
  wire::Vector vector = wire::START;  // which installed vector
};
// The partition has left this worker: forget what it carries.
struct DropAction {
  int partition = 0;
};
// Nothing is left to do: ok when the job is done, else why not.
struct LeaveAction {
  Status status;
};

using WorkerAction = std::variant<SendToServerAction, InitialiseAction, InstallAction, AdoptAction,
                                  TrainAction, EvaluateAction, DropAction, LeaveAction>;
using WorkerActions = std::vector<WorkerAction>;

// A chunk of a contribution.
struct CodedChunk {
  int chunk = 0;
  Payload payload;
};

// How long the parts of a block took.
struct BlockTimes {
  double compute_ms = 0;  // with what is coded meanwhile
  double coding_ms = 0;   // after that
};

// A trained block, coded.
struct TrainedBlock {
  struct Array {
    int chunk = 0;
    int index = 0;  // of CarriedArrays
    Payload payload;
  };
  std::vector<Payload> contributions;  // by chunk; empty payloads where there was no data
  std::vector<Array> carried;          // if save_state
  checkpoint::SampleSums metrics;
  BlockTimes times;
};

}  // namespace kumo
