// What the disk answers to the actions of a coordinator, and of who brings files to it (actions.h).
//
// Values.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

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

// To CheckFilesAction: those of `wanted` that are to be fetched; the error of a disk that cannot
// say.
struct FilesChecked {
  uint64_t fetch = 0;
  Result<std::vector<int>> missing;
};
// To WritePieceAction. DataLoss: the whole file is not what the manifest says.
struct PieceWritten {
  uint64_t fetch = 0;
  uint64_t offset = 0;
  Status status;
};

using DiskAnswer =
    std::variant<CheckpointCommitted, CheckpointChosen, GenerationReserved, EvaluationKept>;
// To whoever brings files to the disk (server/disks/).
using FilesAnswer = std::variant<FilesChecked, PieceWritten>;

}  // namespace kumo
