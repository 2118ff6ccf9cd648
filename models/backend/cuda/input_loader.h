// Input loader of the GPU (models/backend/input_loader.h). All arguments are borrowed for the
// loader's life. One thread.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/cuda/pinned_staging.h"
#include "models/backend/input_loader.h"

namespace kumo::cuda {

std::unique_ptr<InputLoader> MakeInputLoader(CudaEngine& engine, PinnedStaging& staging,
                                             InputBuffers& inputs, std::vector<InputField> fields);

}  // namespace kumo::cuda
