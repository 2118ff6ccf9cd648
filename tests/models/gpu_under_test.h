// Which GPU a test is linked with: see kumo_add_gpu_test.
#pragma once

namespace kumo {

// Whether it is the simulated one, which is always there.
bool GpuIsSimulated();

}  // namespace kumo
