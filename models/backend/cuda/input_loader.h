// Inputs made on the GPU, see models/backend/input_loader.h. Everything is borrowed for the
// loader's life. One thread.
#pragma once

#include <memory>

#include "common/job/pixels.h"
#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/staging.h"
#include "models/backend/input_loader.h"
#include "models/tensor.h"

namespace kumo::cuda {

std::unique_ptr<InputLoader> MakeInputLoader(Engine& engine, Staging& staging, InputBuffers& inputs,
                                             const Shape& shape, const PixelFormula& formula);

}  // namespace kumo::cuda
