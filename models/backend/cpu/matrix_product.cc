#include "models/backend/cpu/matrix_product.h"

#include <dnnl.h>
#include <glog/logging.h>

#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cpu/onednn_threads.h"

namespace kumo {
namespace {

dnnl_cpu_isa_t OneDnnLevel(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return dnnl_cpu_isa_sse41;
    case Isa::kV3:
      return dnnl_cpu_isa_avx2;
    case Isa::kV4:
      return dnnl_cpu_isa_avx512_core;
  }
  return dnnl_cpu_isa_sse41;
}

}  // namespace

// oneDNN takes the limit once, before its first product.
Status LimitProducts(Isa isa) {
  const dnnl_cpu_isa_t level = OneDnnLevel(isa);
  if (dnnl_set_max_cpu_isa(level) == dnnl_success || dnnl_get_effective_cpu_isa() == level) {
    return OkStatus();
  }
  return Internal("network.instruction_set: oneDNN already computes with another level");
}

}  // namespace kumo

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
