// cuBLASLt's matrix products. The meaning of attributes and epilogues is that of cublasLt.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include <cublasLt.h>
#include <glog/logging.h>

#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/runtime.h"

struct cublasLtContext {
  int device = 0;
};

namespace kumo::simulated_gpu {
namespace {

template <typename F>
cublasStatus_t CublasCall(F call) {
  return Library(Api::kCublasLt, CUBLAS_STATUS_EXECUTION_FAILED, call);
}

std::optional<Number> NumberOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return Number::kFloat32;
    case CUDA_R_16F:
      return Number::kFloat16;
    case CUDA_R_16BF:
      return Number::kBfloat16;
    default:
      return std::nullopt;
  }
}

// --- Descriptors. Those that the header lays out are handed out by their addresses all the same.

struct Operation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  int32_t scale_type = CUDA_R_32F;
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t transpose_a = CUBLAS_OP_N;
  int32_t transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  int32_t bias_type = -1;  // d's
};

struct Layout {
  uint32_t type = CUDA_R_32F;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;

  bool valid() const {
    const uint64_t length = order == CUBLASLT_ORDER_COL ? rows : columns;
    return NumberOf(static_cast<cudaDataType_t>(type)).has_value() && rows > 0 && columns > 0 &&
           (order == CUBLASLT_ORDER_COL || order == CUBLASLT_ORDER_ROW) &&
           leading >= static_cast<int64_t>(length);
  }
  Number number() const { return *NumberOf(static_cast<cudaDataType_t>(type)); }
  int64_t at(int64_t row, int64_t column) const {
    return order == CUBLASLT_ORDER_COL ? row + column * leading : row * leading + column;
  }
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  // a, b, c, d
};

const Operation& Of(cublasLtMatmulDesc_t operation) {
  return *reinterpret_cast<const Operation*>(operation);
}
const Layout& Of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<const Layout*>(layout); }
const Preference& Of(cublasLtMatmulPreference_t preference) {
  return *reinterpret_cast<const Preference*>(preference);
}

// An attribute's place in its descriptor.
struct Slot {
  void* memory = nullptr;
  size_t bytes = 0;
};
template <typename T>
Slot SlotOf(T& member) {
  return {&member, sizeof(member)};
}

Slot AttributeOf(Operation& of, cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return SlotOf(of.pointer_mode);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return SlotOf(of.scale_type);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return SlotOf(of.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return SlotOf(of.transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return SlotOf(of.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return SlotOf(of.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return SlotOf(of.bias_type);
    default:
      LOG(FATAL) << "simulated GPU: attribute " << attribute << " of a product is not simulated";
  }
}

Slot AttributeOf(Layout& of, cublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return SlotOf(of.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return SlotOf(of.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return SlotOf(of.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return SlotOf(of.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return SlotOf(of.leading);
    default:
      LOG(FATAL) << "simulated GPU: attribute " << attribute << " of a matrix is not simulated";
  }
}

Slot AttributeOf(Preference& of, cublasLtMatmulPreferenceAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return SlotOf(of.workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return SlotOf(of.reduction_schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return SlotOf(of.alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return SlotOf(of.alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return SlotOf(of.alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return SlotOf(of.alignments[3]);
    default:
      LOG(FATAL) << "simulated GPU: preference " << attribute << " is not simulated";
  }
}

template <typename Object, typename Handle>
cublasStatus_t Create(const Object& object, Handle* handle) {
  return CublasCall([&](Machine&) {
    *handle = reinterpret_cast<Handle>(new Object(object));
    return CUBLAS_STATUS_SUCCESS;
  });
}

template <typename Object, typename Handle, typename Attribute>
cublasStatus_t SetAttribute(Handle handle, Attribute attribute, const void* value, size_t bytes) {
  return CublasCall([&](Machine&) {
    const Slot slot = AttributeOf(*reinterpret_cast<Object*>(handle), attribute);
    if (value == nullptr || bytes != slot.bytes) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(slot.memory, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  });
}

// --- Products

struct Product {
  Operation operation;
  Layout a, b, c, d;

  int64_t rows() const { return static_cast<int64_t>(d.rows); }
  int64_t columns() const { return static_cast<int64_t>(d.columns); }
  int64_t depth() const {
    return static_cast<int64_t>(operation.transpose_a == CUBLAS_OP_N ? a.columns : a.rows);
  }
  bool has_epilogue(uint32_t part) const { return (operation.epilogue & part) != 0; }
  bool uses_bias() const {
    return has_epilogue(CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADA |
                        CUBLASLT_EPILOGUE_BGRADB);
  }

  cublasStatus_t Check() const {
    if (!a.valid() || !b.valid() || !c.valid() || !d.valid()) return CUBLAS_STATUS_INVALID_VALUE;
    const bool plain_b = operation.transpose_b == CUBLAS_OP_N;
    const uint64_t rows_of_a = operation.transpose_a == CUBLAS_OP_N ? a.rows : a.columns;
    if (rows_of_a != d.rows || (plain_b ? b.columns : b.rows) != d.columns ||
        static_cast<int64_t>(plain_b ? b.rows : b.columns) != depth() || c.rows != d.rows ||
        c.columns != d.columns) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (uses_bias() && operation.bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (operation.compute != CUBLAS_COMPUTE_32F &&
        operation.compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    // The faster kinds of float32 arithmetic are for float32 operands.
    if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type != CUDA_R_32F) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const bool known_epilogue = operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                                operation.epilogue == CUBLASLT_EPILOGUE_RELU ||
                                operation.epilogue == CUBLASLT_EPILOGUE_BIAS ||
                                operation.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
                                operation.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
                                operation.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const bool known_types = a.type == b.type && c.type == d.type &&
                             (d.type == a.type || (d.type == CUDA_R_32F && a.type != CUDA_R_32F));
    // A bias is of d's type.
    const bool known_bias =
        operation.bias_type == -1 || operation.bias_type == static_cast<int32_t>(d.type);
    if (!known_epilogue || !known_types || !known_bias || operation.scale_type != CUDA_R_32F ||
        operation.pointer_mode != CUBLASLT_POINTER_MODE_HOST || c.order != d.order) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
  }
};

// op(matrix) in float32: its rows one after the other, or its columns where those are so in memory.
struct Dense {
  Dense(const Layout& layout, int32_t operation, const void* matrix)
      : by_columns((layout.order == CUBLASLT_ORDER_COL) == (operation == CUBLAS_OP_N)) {
    const bool column_major = layout.order == CUBLASLT_ORDER_COL;
    const auto lines = static_cast<int64_t>(column_major ? layout.columns : layout.rows);
    length = static_cast<int64_t>(column_major ? layout.rows : layout.columns);
    numbers.resize(static_cast<size_t>(lines * length));
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = 0; i < length; ++i) {
        numbers[line * length + i] = Load(layout.number(), matrix, line * layout.leading + i);
      }
    }
  }
  float at(int64_t row, int64_t column) const {
    return numbers[by_columns ? column * length + row : row * length + column];
  }

  bool by_columns = false;
  int64_t length = 0;  // of a row or a column
  std::vector<float> numbers;
};

struct Operands {
  float alpha = 1;
  float beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
};

void Run(const Product& product, const Operands& with) {
  const Operation& operation = product.operation;
  const int64_t rows = product.rows();
  const int64_t columns = product.columns();
  const int64_t depth = product.depth();
  const Number number = product.d.number();
  const Dense a(product.a, operation.transpose_a, with.a);
  const Dense b(product.b, operation.transpose_b, with.b);
  std::vector<float> sums(static_cast<size_t>(rows * columns));
  Multiply({rows, columns, depth, a.by_columns, b.by_columns}, a.numbers.data(), b.numbers.data(),
           0.0f, sums.data());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float value = with.alpha * sums[r * columns + c];
      if (with.beta != 0.0f) {
        value += with.beta * Load(product.c.number(), with.c, product.c.at(r, c));
      }
      if (product.has_epilogue(CUBLASLT_EPILOGUE_BIAS)) value += Load(number, operation.bias, r);
      // The larger number: of NaN and 0 that is 0, as by a card's instruction.
      if (product.has_epilogue(CUBLASLT_EPILOGUE_RELU)) value = std::fmax(value, 0.0f);
      Store(number, value, product.d.at(r, c), with.d);
    }
  }
  // Sums over the depth: of op(a) for each row of d, of op(b) for each column.
  const bool of_a = product.has_epilogue(CUBLASLT_EPILOGUE_BGRADA);
  if (!of_a && !product.has_epilogue(CUBLASLT_EPILOGUE_BGRADB)) return;
  for (int64_t i = 0; i < (of_a ? rows : columns); ++i) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += of_a ? a.at(i, k) : b.at(k, i);
    Store(number, sum, i, operation.bias);
  }
}

// --- Algorithms

// What a cublasLtMatmulAlgo_t holds here.
struct Algorithm {
  uint64_t magic = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  uint64_t workspace = 0;
  uint64_t alignment = 1;  // of a, b, c and d
  uint64_t epilogue = 0;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kMagic = 0x73696d756c617465;
constexpr uint64_t kVectorBytes = 16;
constexpr uint64_t kWorkspaceAlignment = 256;

bool IsAligned(const void* pointer, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

// The fastest first: sums in two parts that are put together in the workspace, by wide loads; then
// one that takes any operands and needs nothing.
std::vector<Algorithm> AlgorithmsFor(const Product& product, const Preference& preference) {
  Algorithm split = {kMagic,
                     product.rows(),
                     product.columns(),
                     product.depth(),
                     static_cast<uint64_t>(product.rows() * product.columns()) * sizeof(float),
                     kVectorBytes,
                     product.operation.epilogue};
  Algorithm simple = split;
  simple.workspace = 0;
  simple.alignment = BytesOf(product.a.number());
  std::vector<Algorithm> algorithms;
  for (const Algorithm& algorithm : {split, simple}) {
    const auto scheme =
        algorithm.workspace > 0 ? uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE} : ~uint32_t{0};
    const bool aligned =
        std::all_of(std::begin(preference.alignments), std::end(preference.alignments),
                    [&](uint32_t alignment) { return alignment >= algorithm.alignment; });
    if (aligned && algorithm.workspace <= preference.workspace &&
        (scheme == ~uint32_t{0} || (scheme & preference.reduction_schemes) != 0)) {
      algorithms.push_back(algorithm);
    }
  }
  return algorithms;
}

}  // namespace
}  // namespace kumo::simulated_gpu

using namespace kumo::simulated_gpu;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return CublasCall([&](Machine&) {
    *handle = new cublasLtContext{CurrentDevice()};
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "the operation completed successfully";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the GPU program failed to execute";
    default:
      return "a status that the simulated GPU has no words for";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale_type) {
  return Create(Operation{.compute = compute, .scale_type = scale_type}, operation);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete reinterpret_cast<Operation*>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return SetAttribute<Operation>(operation, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  return Create(Layout{static_cast<uint32_t>(type), CUBLASLT_ORDER_COL, rows, columns, leading},
                layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return SetAttribute<Layout>(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Create(Preference(), preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return SetAttribute<Preference>(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  return CublasCall([&](Machine&) {
    if (wanted < 1 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    const Product product = {Of(operation), Of(a), Of(b), Of(c), Of(d)};
    if (const cublasStatus_t status = product.Check(); status != CUBLAS_STATUS_SUCCESS) {
      return status;
    }
    for (const Algorithm& algorithm : AlgorithmsFor(product, Of(preference))) {
      if (*count == wanted) break;
      cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
      result = {};
      std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
      result.workspaceSize = algorithm.workspace;
      result.state = CUBLAS_STATUS_SUCCESS;
      result.wavesCount = 1.0f;
    }
    return *count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  return CublasCall([&](Machine& machine) {
    const Product product = {Of(operation), Of(a_layout), Of(b_layout), Of(c_layout), Of(d_layout)};
    if (const cublasStatus_t status = product.Check(); status != CUBLAS_STATUS_SUCCESS) {
      return status;
    }
    Algorithm algorithm;
    if (chosen != nullptr) {
      std::memcpy(static_cast<void*>(&algorithm), chosen, sizeof(algorithm));
    } else {
      algorithm = AlgorithmsFor(product, {}).back();
    }
    if (algorithm.magic != kMagic || algorithm.rows != product.rows() ||
        algorithm.columns != product.columns() || algorithm.depth != product.depth() ||
        algorithm.epilogue != product.operation.epilogue || algorithm.workspace > workspace_bytes ||
        (algorithm.workspace > 0 && !IsAligned(workspace, kWorkspaceAlignment))) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (const void* pointer : {a, b, c, const_cast<const void*>(d)}) {
      if (pointer == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
      if (!IsAligned(pointer, algorithm.alignment)) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    // In place, c is d.
    if (c == d && (product.c.leading != product.d.leading)) return CUBLAS_STATUS_INVALID_VALUE;
    // An epilogue is reported to fail on cards if the bias is not aligned, which the search for an
    // algorithm does not see, or if the result has one row or one column.
    if (product.uses_bias() && (!IsAligned(product.operation.bias, kVectorBytes) ||
                                product.rows() == 1 || product.columns() == 1)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    // A heuristic's algorithm is reported to be refused on cards where arrays are aligned
    // differently.
    if (algorithm.workspace > 0 && !IsAligned(d, 2 * kVectorBytes)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    CUstream_st* const queue = machine.Find(stream, handle->device);
    if (queue == nullptr || handle->device != CurrentDevice() ||
        queue->queue->device != handle->device) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const Operands operands = {
        *static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, c, d};
    const cudaError_t error =
        machine.Submit(queue, [=, bytes = static_cast<size_t>(algorithm.workspace)] {
          if (bytes > 0) std::memset(workspace, 0xFF, bytes);
          Run(product, operands);
        });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}
