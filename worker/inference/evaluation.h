// `kumo evaluate`: a checkpoint's weights against the validation set.
#pragma once

#include <string>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

// With the names and figures of an epoch's evaluation (common/telemetry/figures.h): one JSON
// object, or a line. The errors of OpenStoredModel, NetworkOf, OpenJob and of the device;
// FailedPrecondition, naming the first difference, where the experiment or the data would have the
// weights see something else than they were trained on; ResourceExhausted where memory does not
// suffice.
Result<std::string> EvaluateCheckpoint(const ModelName& name, bool json);

}  // namespace kumo
