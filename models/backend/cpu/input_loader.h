// Input loader of the CPU: minibatches into the CPU's layout (layout.h), with the samples in the
// vector lanes.
#pragma once

#include <memory>
#include <vector>

#include "models/backend/cpu/cpu_engine.h"
#include "models/backend/device_queue.h"
#include "models/backend/input_loader.h"

namespace kumo::cpu {

// memory and engine are borrowed for life.
std::unique_ptr<InputLoader> MakeInputLoader(DeviceQueue& memory, const CpuEngine& engine,
                                             std::vector<InputField> fields, int max_batch);

}  // namespace kumo::cpu
