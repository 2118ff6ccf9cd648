#include "tests/simulated_gpu/numbers.h"

#include <glog/logging.h>
#include <oneapi/dnnl/dnnl.h>

#include "models/backend/cpu/onednn_threads.h"

namespace kumo::simulated_gpu {

void Multiply(const MatrixShape& shape, const float* a, const float* b, float beta, float* c) {
  cpu::KeepOneDnnOnThisThread();  // these products are small, and tests run side by side
  const dnnl_status_t status =
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', shape.rows,
                 shape.columns, shape.depth, 1.0f, a, shape.transpose_a ? shape.rows : shape.depth,
                 b, shape.transpose_b ? shape.depth : shape.columns, beta, c, shape.columns);
  CHECK_EQ(status, dnnl_success);
}

}  // namespace kumo::simulated_gpu
