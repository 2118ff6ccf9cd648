// `kumo export`: a checkpoint's weights, or its network with them, as a file of other programs'.
#pragma once

#include <string>

#include "common/base/status.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct ExportRequest {
  std::string out;
  std::string format;  // onnx, safetensors, npz; "": by the ending of `out`
  bool fold_batch_norm = false;
  bool pixels = false;  // the ONNX model takes pixels
};

// InvalidArgument where no format is meant, or it does not go with what is asked.
Result<std::string> FormatOf(const ExportRequest& request);

// Writes the file, which appears whole or not at all, and says what is in it, in one line for
// people. FailedPrecondition where a layer has no form in ONNX; otherwise the errors of
// OpenStoredModel, NetworkOf, DataOf and of writing.
Result<std::string> ExportModel(const ModelName& name, const ExportRequest& request);

}  // namespace kumo
