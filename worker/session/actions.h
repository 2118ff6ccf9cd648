// Actions and results at the border between a worker's session and its driver. The session does no
// I/O and no arithmetic: it returns actions, and the driver carries them out in order and hands the
// results back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/codec/codec.h"
#include "common/job/job_plan.h"
#include "common/job/metric_sums.h"
#include "common/job/round_policy.h"
#include "common/transport/message.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// A chunk of one of the arrays that a partition carries from round to round.
struct CarriedArray {
  int chunk = 0;
  int index = 0;    // as CarriedArrays numbers them
  Payload payload;  // float32
};

struct SendToServerAction {
  int server = 0;
  Message message;
};
// Computes the initial weights, then calls OnInitialised.
struct InitialiseAction {};
struct InitialWeights {
  std::vector<Payload> chunks;
  std::optional<checkpoint::Origin> origin;  // if some weights come from another job
};
// Decodes a chunk's payload into the base weights (vector START) or into the evaluated weights
// (vector WEIGHTS), or adds it to them, or steps them by the contributions in it
// (RoundPolicy::Relays).
struct InstallAction {
  int chunk = 0;
  wire::Vector vector = wire::START;
  bool adds = false;
  const Codec* codec = nullptr;
  Payload payload;
  std::optional<Relay> relay = std::nullopt;
};
// Takes over the carried state of a partition before its first block on this worker. Arrays and
// chunks that are not listed are zero.
struct AdoptAction {
  int partition = 0;
  std::vector<CarriedArray> arrays;
  int64_t round = 0;  // the partition's next one
};
// Trains the partition's block of a round from the base weights; calls OnCoded with the chunks that
// are coded before the end of the block, then OnTrained.
struct TrainAction {
  int partition = 0;
  RoundPlan round;
  bool save_state = false;  // also return the partition's carried state after the block
};
// Trains the front of the partition's next slice, from where its block has just ended on
// (JobPlan::AheadSamples); then calls OnTrainedAhead.
struct TrainAheadAction {
  int partition = 0;
  RoundPlan round;          // of that slice
  bool save_state = false;  // also return the partition's carried state
};
// Result of an evaluation.
struct Evaluation {
  MetricSums metrics{};
  std::string picture{};  // of a detector's first samples: PNG, at most kMostPictureBytes; "": none
};
// Evaluates the partition's slice of the validation set, then calls OnEvaluated.
struct EvaluateAction {
  int partition = 0;
  int64_t version = 0;
  wire::Vector vector = wire::START;  // which installed vector
};
// Discards the carried state of a partition that has left this worker.
struct DropAction {
  int partition = 0;
};
// Ends the worker: ok if the job is done, otherwise the reason.
struct LeaveAction {
  Status status;
  bool handed_over = false;  // it left on request, and nothing of its work is lost
  bool job_ended = false;    // done, stopped or failed, for all workers
};

using WorkerAction =
    std::variant<SendToServerAction, InitialiseAction, InstallAction, AdoptAction, TrainAction,
                 TrainAheadAction, EvaluateAction, DropAction, LeaveAction>;
using WorkerActions = std::vector<WorkerAction>;

// One coded chunk of a contribution.
struct CodedChunk {
  int chunk = 0;
  Payload payload;
  std::optional<int64_t> weight = std::nullopt;  // as TrainedBlock::weight
};

// Durations of the two parts of a block.
struct BlockTimes {
  double compute_ms = 0;  // including the coding that overlaps it
  double coding_ms = 0;   // the rest of the coding that no steps hide
};

// The front of a slice, trained ahead.
struct TrainedAhead {
  std::vector<CarriedArray> carried;  // if save_state
  int64_t samples = 0;
  double compute_ms = 0;
};

// A trained and coded block.
struct TrainedBlock {
  std::vector<Payload> contributions;  // by chunk; empty payloads where there was no data
  std::vector<CarriedArray> carried;   // if save_state
  MetricSums metrics;
  // Weight of the contributions in the round's mean; none: their samples.
  std::optional<int64_t> weight = std::nullopt;
  BlockTimes times;
};

}  // namespace kumo
