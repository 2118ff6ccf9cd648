// The network's tensors as a manifest lists them: names, shapes, and where they lie in the flat
// vector.
#pragma once

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

void SetTensors(const ParameterLayout& layout, checkpoint::Manifest* manifest);

// Whether the manifest lists them; those of 0.1 do not.
bool HasTensors(const checkpoint::Manifest& manifest);

// DataLoss for a list that no network has, or that does not agree with the manifest's fingerprint
// and places. Requires HasTensors.
Result<ParameterLayout> LayoutOf(const checkpoint::Manifest& manifest);

}  // namespace kumo
