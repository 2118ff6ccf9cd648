// Input loader of the GPU (models/backend/input_loader.h). All arguments are borrowed for the
// loader's life. One thread.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/staging.h"
#include "models/backend/input_loader.h"

namespace kumo::cuda {

std::unique_ptr<InputLoader> MakeInputLoader(Engine& engine, Staging& staging, InputBuffers& inputs,
                                             std::vector<InputField> fields);

}  // namespace kumo::cuda
