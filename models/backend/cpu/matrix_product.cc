#include "models/backend/cpu/matrix_product.h"

#include <dnnl.h>
#include <glog/logging.h>

#include "models/backend/cpu/onednn_threads.h"

namespace kumo::cpu {

void MultiplyRows(int64_t rows, int64_t columns, int64_t depth, const Matrix& a, const Matrix& b,
                  bool add, float* to, int64_t to_row) {
  KeepOneDnnOnThisThread();  // the engine's threads each call for their own rows
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed, b.transposed, rows, columns, depth, 1.0f, a.data, a.row, b.data,
                 b.row, add ? 1.0f : 0.0f, to, to_row);
  CHECK_EQ(status, dnnl_success) << "dnnl_sgemm";
}

}  // namespace kumo::cpu
