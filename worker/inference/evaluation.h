// Evaluation of a checkpoint on the validation set (`kumo evaluate`).
#pragma once

#include <string>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

// Returns the metrics of the evaluation, with the names and formats of an epoch's evaluation
// (common/telemetry/figures.h), as one JSON object or one line. The errors of OpenStoredModel,
// NetworkOf, OpenJob and of the device; FailedPrecondition, naming the first difference, if
// experiment or data would give the weights other inputs than in training; ResourceExhausted if
// memory does not suffice.
Result<std::string> EvaluateCheckpoint(const ModelName& name, bool json);

}  // namespace kumo
