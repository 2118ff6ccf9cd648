// Evaluation of a checkpoint on the validation set (`kumo evaluate`).
#pragma once

#include <string>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct EvaluationForm {
  bool json = false;
  bool classes = false;  // also the figures of each class, and in JSON the confusion matrix
};

// Returns the metrics of the evaluation, with the names and formats of an epoch's evaluation
// (common/telemetry/figures.h), as one JSON object or one line, and
// below it a table of the classes. The errors of OpenStoredModel,
// NetworkOf, OpenJob and of the device; FailedPrecondition, naming the first difference, if
// experiment or data would give the weights other inputs than in training; InvalidArgument for
// the classes of a network that has none, or more than kMostClasses (confusion_matrix.h);
// ResourceExhausted if memory does not suffice.
Result<std::string> EvaluateCheckpoint(const ModelName& name, const EvaluationForm& form);

}  // namespace kumo
