// What the disk answers to the actions of a coordinator (actions.h).
//
// Values.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// To CommitAction.
struct CheckpointCommitted {
  int64_t version = 0;
  Status status;
};
// To ChooseCheckpointAction; none where there is none to go on from.
struct CheckpointChosen {
  Result<std::optional<checkpoint::Manifest>> checkpoint;
};
// To ReserveGenerationAction.
struct GenerationReserved {};
// To KeepEvaluationAction, also where that failed.
struct EvaluationKept {};

using DiskAnswer =
    std::variant<CheckpointCommitted, CheckpointChosen, GenerationReserved, EvaluationKept>;

}  // namespace kumo
