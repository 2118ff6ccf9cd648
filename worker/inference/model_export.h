// Export of a checkpoint's weights, or of its network with weights, to the file formats of other
// programs (`kumo export`).
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/settings/output_format.h"
#include "worker/inference/stored_model.h"

namespace kumo {

struct ExportRequest {
  std::string out;
  std::optional<ExportFormat> format = {};  // none: from the ending of `out`
  bool fold_batch_norm = false;
  bool pixels = false;  // the ONNX model takes pixels
  bool nms = false;     // the ONNX model of a detector chooses the detections
};

// InvalidArgument if the ending tells no format, or the format does not allow the requested
// options.
Result<ExportFormat> FormatOf(const ExportRequest& request);

// Writes the file atomically and returns a line for people that describes it. FailedPrecondition if
// a layer has no form in ONNX; InvalidArgument if request.nms is set and the network is no
// detector; otherwise the errors of OpenStoredModel, NetworkOf, DataOf and of writing.
Result<std::string> ExportModel(const ModelName& name, const ExportRequest& request);

}  // namespace kumo
