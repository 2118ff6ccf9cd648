#include "tests/models/gpu_under_test.h"

bool kumo::GpuIsSimulated() { return true; }
