// cuDNN's convolutions: windows laid out as the columns of a matrix, then matrix products.
//
// There are a few algorithms of each kind. They compute the same, but differ in the workspace that
// they need, which they fill with rubbish, and in whether they repeat their bits: those that do not
// add the samples up in another order each time.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>

#include <cudnn.h>

#include "tests/simulated_gpu/cudnn_objects.h"

namespace kumo::simulated_gpu {
namespace {

struct ConvolutionPlan {
  cudnnConvolutionStruct convolution;
  Tensor x;
  Tensor w;
  Tensor y;

  cudnnStatus_t Check() const {
    if (!convolution.set || !x.set || !w.set || !y.set || x.number != w.number ||
        x.number != y.number || x.dims[0] != y.dims[0] || x.dims[1] != w.dims[1] * groups() ||
        y.dims[1] != w.dims[0] || w.dims[0] % groups() != 0) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    for (size_t d = 0; d < 2; ++d) {
      if (y.dims[d + 2] != Positions(x.dims[d + 2], w.dims[d + 2], convolution.pad[d],
                                     convolution.stride[d], convolution.dilation[d])) {
        return CUDNN_STATUS_BAD_PARAM;
      }
    }
    // A filter with its channels last goes with tensors of that kind only.
    const auto channels_last = [](const Tensor& t) {
      return t.dims[1] > 1 && t.strides[1] == 1 && t.strides[3] == t.dims[1];
    };
    const bool mixed = channels_last(w) && !(channels_last(x) && channels_last(y));
    return mixed ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
  }

  int64_t samples() const { return x.dims[0]; }
  int64_t groups() const { return convolution.groups; }
  int64_t outputs() const { return w.dims[0] / groups(); }  // of one group
  int64_t taps() const { return w.dims[1] * w.dims[2] * w.dims[3]; }
  int64_t plane() const { return y.dims[2] * y.dims[3]; }
  int64_t x_sample() const { return x.size() / samples(); }
  int64_t y_sample() const { return y.size() / samples(); }
};

// Where a group's part of a sample, of the filter or of an output begins.
int64_t InputOf(const ConvolutionPlan& plan, int64_t n, int64_t group) {
  return n * plan.x_sample() + group * (plan.x_sample() / plan.groups());
}
int64_t FilterOf(const ConvolutionPlan& plan, int64_t group) {
  return group * plan.outputs() * plan.taps();
}
int64_t OutputOf(const ConvolutionPlan& plan, int64_t n, int64_t group) {
  return n * plan.y_sample() + group * plan.outputs() * plan.plane();
}

// Of one group: each(position in the matrix [taps][plane], position in the group's part of the
// sample or -1 outside of it)
template <typename Each>
void ForEachTap(const ConvolutionPlan& plan, Each each) {
  const auto [samples, all_channels, height, width] = plan.x.dims;
  const int64_t channels = plan.w.dims[1];
  const auto& of = plan.convolution;
  int64_t i = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < plan.w.dims[2]; ++r) {
      for (int64_t s = 0; s < plan.w.dims[3]; ++s) {
        for (int64_t p = 0; p < plan.y.dims[2]; ++p) {
          const int64_t h = p * of.stride[0] - of.pad[0] + r * of.dilation[0];
          for (int64_t q = 0; q < plan.y.dims[3]; ++q) {
            const int64_t v = q * of.stride[1] - of.pad[1] + s * of.dilation[1];
            const bool inside = h >= 0 && h < height && v >= 0 && v < width;
            each(i++, inside ? (c * height + h) * width + v : -1);
          }
        }
      }
    }
  }
}

std::vector<float> Columns(const ConvolutionPlan& plan, const float* sample) {
  std::vector<float> columns(static_cast<size_t>(plan.taps() * plan.plane()));
  ForEachTap(plan, [&](int64_t i, int64_t at) { columns[i] = at < 0 ? 0.0f : sample[at]; });
  return columns;
}

// The filter as a cross-correlation has it; and back.
std::vector<float> Turned(const ConvolutionPlan& plan, std::vector<float> w) {
  if (plan.convolution.mode == CUDNN_CROSS_CORRELATION) return w;
  const int64_t window = plan.w.dims[2] * plan.w.dims[3];
  for (auto at = w.begin(); at != w.end(); at += window) std::reverse(at, at + window);
  return w;
}

std::vector<float> Convolve(const ConvolutionPlan& plan, const void* x, const void* w) {
  const std::vector<float> input = Read(plan.x, x);
  const std::vector<float> filter = Turned(plan, Read(plan.w, w));
  std::vector<float> output(static_cast<size_t>(plan.y.size()));
  for (int64_t n = 0; n < plan.samples(); ++n) {
    for (int64_t g = 0; g < plan.groups(); ++g) {
      const std::vector<float> columns = Columns(plan, input.data() + InputOf(plan, n, g));
      Multiply({plan.outputs(), plan.plane(), plan.taps()}, filter.data() + FilterOf(plan, g),
               columns.data(), 0.0f, output.data() + OutputOf(plan, n, g));
    }
  }
  return output;
}

std::vector<float> GradientOfInput(const ConvolutionPlan& plan, const void* w, const void* dy) {
  const std::vector<float> filter = Turned(plan, Read(plan.w, w));
  const std::vector<float> grad_output = Read(plan.y, dy);
  std::vector<float> grad_input(static_cast<size_t>(plan.x.size()));
  std::vector<float> columns(static_cast<size_t>(plan.taps() * plan.plane()));
  for (int64_t n = 0; n < plan.samples(); ++n) {
    for (int64_t g = 0; g < plan.groups(); ++g) {
      Multiply({.rows = plan.taps(),
                .columns = plan.plane(),
                .depth = plan.outputs(),
                .transpose_a = true},
               filter.data() + FilterOf(plan, g), grad_output.data() + OutputOf(plan, n, g), 0.0f,
               columns.data());
      float* const part = grad_input.data() + InputOf(plan, n, g);
      ForEachTap(plan, [&](int64_t i, int64_t at) {
        if (at >= 0) part[at] += columns[i];
      });
    }
  }
  return grad_input;
}

std::vector<float> GradientOfFilter(const ConvolutionPlan& plan, const void* x, const void* dy,
                                    std::span<const int64_t> order) {
  const std::vector<float> input = Read(plan.x, x);
  const std::vector<float> grad_output = Read(plan.y, dy);
  std::vector<float> gradient(static_cast<size_t>(plan.w.size()));
  for (const int64_t n : order) {
    for (int64_t g = 0; g < plan.groups(); ++g) {
      const std::vector<float> columns = Columns(plan, input.data() + InputOf(plan, n, g));
      Multiply({.rows = plan.outputs(),
                .columns = plan.taps(),
                .depth = plan.plane(),
                .transpose_b = true},
               grad_output.data() + OutputOf(plan, n, g), columns.data(), 1.0f,
               gradient.data() + FilterOf(plan, g));
    }
  }
  return Turned(plan, std::move(gradient));
}

// The samples' order, which moves on with each call where an algorithm does not repeat itself.
std::vector<int64_t> OrderOfSamples(int64_t samples, bool repeats) {
  static int64_t calls = 0;
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!repeats) std::rotate(order.begin(), order.begin() + ++calls % samples, order.end());
  return order;
}

// --- Algorithms

struct ConvolutionAlgorithm {
  int number = 0;
  bool repeats = true;
  size_t workspace = 0;
  bool tensor_cores = false;  // can use them, where the descriptor lets it
  bool possible = true;
};

using Algorithms = std::vector<ConvolutionAlgorithm> (*)(const ConvolutionPlan&);

bool IsThreeByThree(const ConvolutionPlan& plan) {
  const auto& of = plan.convolution;
  return plan.w.dims[2] == 3 && plan.w.dims[3] == 3 && of.stride[0] == 1 && of.stride[1] == 1 &&
         of.dilation[0] == 1 && of.dilation[1] == 1;
}

size_t BytesOfColumns(const ConvolutionPlan& plan) {
  return static_cast<size_t>(plan.taps() * plan.plane()) * sizeof(float);
}

// The fastest first.
std::vector<ConvolutionAlgorithm> Forward(const ConvolutionPlan& plan) {
  return {{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, true, plan.x.bytes() + plan.y.bytes(),
           true, IsThreeByThree(plan)},
          {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, true, BytesOfColumns(plan)},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, 1000, true},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, 0},
          {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, true, 0, false, false}};
}

std::vector<ConvolutionAlgorithm> BackwardData(const ConvolutionPlan& plan) {
  return {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, 0},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, BytesOfColumns(plan), true},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, true, 0, false, false}};
}

std::vector<ConvolutionAlgorithm> BackwardFilter(const ConvolutionPlan& plan) {
  return {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, plan.w.bytes()},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, 0},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, BytesOfColumns(plan), true},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, true, 0, false, false}};
}

// Tensor cores want their operands rearranged, and so more space.
size_t WorkspaceOf(const ConvolutionAlgorithm& algorithm, cudnnMathType_t math) {
  return algorithm.workspace + (algorithm.tensor_cores && math != CUDNN_FMA_MATH ? 512 : 0);
}

// What an algorithm needs beside its operands: checked now, filled when it runs.
struct Workspace {
  void* memory = nullptr;
  size_t given = 0;
};

// A kernel may read 16 bytes at once, which faults where they do not lie on 16 bytes.
bool Aligned(const void* x, const void* w, const void* y) {
  return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(w) |
          reinterpret_cast<uintptr_t>(y)) %
             16 ==
         0;
}

// Queues `work`, by the algorithm of that number: work(whether it repeats its bits).
template <typename F>
cudnnStatus_t Run(Machine& machine, cudnnHandle_t handle, const ConvolutionPlan& plan,
                  Algorithms algorithms, int number, Workspace workspace, F work) {
  if (const cudnnStatus_t status = plan.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  for (const ConvolutionAlgorithm& algorithm : algorithms(plan)) {
    if (algorithm.number != number || !algorithm.possible) continue;
    const size_t needed = WorkspaceOf(algorithm, plan.convolution.math);
    if (needed > workspace.given || (needed > 0 && workspace.memory == nullptr)) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    return Submit(machine, handle, [=, memory = workspace.memory, repeats = algorithm.repeats] {
      if (needed > 0) std::memset(memory, 0xFF, needed);
      work(repeats);
    });
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

// What there is, the fastest first and what does not fit last.
template <typename Measured>
cudnnStatus_t List(const ConvolutionPlan& plan, Algorithms algorithms, size_t workspace, int wanted,
                   int* count, Measured* found) {
  std::vector<cudnnMathType_t> maths = {CUDNN_FMA_MATH};
  if (plan.convolution.math != CUDNN_FMA_MATH) maths.push_back(plan.convolution.math);
  std::vector<Measured> results;
  for (const ConvolutionAlgorithm& algorithm : algorithms(plan)) {
    for (const cudnnMathType_t math : maths) {
      if (math != CUDNN_FMA_MATH && !algorithm.tensor_cores) continue;
      Measured result{};
      result.algo = static_cast<decltype(Measured::algo)>(algorithm.number);
      result.mathType = math;
      result.memory = WorkspaceOf(algorithm, math);
      result.determinism = algorithm.repeats ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
      result.status = !algorithm.possible         ? CUDNN_STATUS_NOT_SUPPORTED
                      : result.memory > workspace ? CUDNN_STATUS_INTERNAL_ERROR
                                                  : CUDNN_STATUS_SUCCESS;
      result.time =
          result.status == CUDNN_STATUS_SUCCESS ? 1.0f + static_cast<float>(results.size()) : -1.0f;
      results.push_back(result);
    }
  }
  std::stable_partition(results.begin(), results.end(), [](const Measured& result) {
    return result.status == CUDNN_STATUS_SUCCESS;
  });
  *count = std::min(wanted, static_cast<int>(results.size()));
  std::copy_n(results.begin(), *count, found);
  return CUDNN_STATUS_SUCCESS;
}

// Measures: waits for the stream, tries the algorithms with the descriptor's mathematics and with
// plain FMA, and leaves rubbish in the output. Fills `found` with the fastest first and what failed
// last.
template <typename Measured>
cudnnStatus_t Find(Machine& machine, cudnnHandle_t handle, const ConvolutionPlan& plan,
                   Algorithms algorithms, Workspace workspace, void* output, size_t output_bytes,
                   int wanted, int* count, Measured* found) {
  if (wanted < 1 || count == nullptr || found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus_t status = plan.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  CUstream_st* const stream = machine.Find(handle->stream, handle->device);
  if (stream == nullptr || handle->device != CurrentDevice()) return CUDNN_STATUS_BAD_PARAM;
  if (machine.Synchronise(stream) != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
  std::memset(output, 0xFF, output_bytes);
  return List(plan, algorithms, workspace.given, wanted, count, found);
}

// Guesses without measuring: as if there were room for every algorithm.
template <typename Measured>
cudnnStatus_t Guess(const ConvolutionPlan& plan, Algorithms algorithms, int wanted, int* count,
                    Measured* found) {
  if (wanted < 1 || count == nullptr || found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus_t status = plan.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  return List(plan, algorithms, SIZE_MAX, wanted, count, found);
}

cudnnStatus_t WorkspaceSize(const ConvolutionPlan& plan, Algorithms algorithms, int number,
                            size_t* bytes) {
  if (const cudnnStatus_t status = plan.Check(); status != CUDNN_STATUS_SUCCESS) return status;
  for (const ConvolutionAlgorithm& algorithm : algorithms(plan)) {
    if (algorithm.number != number || !algorithm.possible) continue;
    *bytes = WorkspaceOf(algorithm, plan.convolution.math);
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace
}  // namespace kumo::simulated_gpu

using namespace kumo::simulated_gpu;

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x_descriptor, cudnnFilterDescriptor_t w_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y_descriptor,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, w_descriptor->tensor,
                                  y_descriptor->tensor};
    return WorkspaceSize(plan, Forward, algorithm, bytes);
  });
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_descriptor, const void*,
    cudnnFilterDescriptor_t w_descriptor, const void*, cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t y_descriptor, void* y, int wanted, int* count,
    cudnnConvolutionFwdAlgoPerf_t* found, void* workspace, size_t workspace_bytes) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, w_descriptor->tensor,
                                  y_descriptor->tensor};
    return Find(machine, handle, plan, Forward, {workspace, workspace_bytes}, y, plan.y.bytes(),
                wanted, count, found);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x_descriptor, cudnnFilterDescriptor_t w_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y_descriptor, int wanted,
    int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, w_descriptor->tensor,
                                  y_descriptor->tensor};
    return Guess(plan, Forward, wanted, count, found);
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_descriptor, const void* x,
                                      cudnnFilterDescriptor_t w_descriptor, const void* w,
                                      cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_descriptor, void* y) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, w_descriptor->tensor,
                                  y_descriptor->tensor};
    if (!Aligned(x, w, y)) return CUDNN_STATUS_BAD_PARAM;
    return Run(
        machine, handle, plan, Forward, algorithm, {workspace, workspace_bytes},
        [=, scale = Scale(alpha, beta)](bool) { Write(plan.y, Convolve(plan, x, w), scale, y); });
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t w_descriptor, cudnnTensorDescriptor_t dy_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx_descriptor,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, dx_descriptor->tensor, w_descriptor->tensor,
                                  dy_descriptor->tensor};
    return WorkspaceSize(plan, BackwardData, algorithm, bytes);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_descriptor, const void*,
    cudnnTensorDescriptor_t dy_descriptor, const void*, cudnnConvolutionDescriptor_t convolution,
    cudnnTensorDescriptor_t dx_descriptor, void* dx, int wanted, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found, void* workspace, size_t workspace_bytes) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, dx_descriptor->tensor, w_descriptor->tensor,
                                  dy_descriptor->tensor};
    return Find(machine, handle, plan, BackwardData, {workspace, workspace_bytes}, dx,
                plan.x.bytes(), wanted, count, found);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t w_descriptor, cudnnTensorDescriptor_t dy_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx_descriptor, int wanted,
    int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, dx_descriptor->tensor, w_descriptor->tensor,
                                  dy_descriptor->tensor};
    return Guess(plan, BackwardData, wanted, count, found);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_descriptor, const void* w,
                                           cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, dx_descriptor->tensor, w_descriptor->tensor,
                                  dy_descriptor->tensor};
    if (!Aligned(dx, w, dy)) return CUDNN_STATUS_BAD_PARAM;
    return Run(machine, handle, plan, BackwardData, algorithm, {workspace, workspace_bytes},
               [=, scale = Scale(alpha, beta)](bool) {
                 Write(plan.x, GradientOfInput(plan, w, dy), scale, dx);
               });
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x_descriptor, cudnnTensorDescriptor_t dy_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw_descriptor,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, dw_descriptor->tensor,
                                  dy_descriptor->tensor};
    return WorkspaceSize(plan, BackwardFilter, algorithm, bytes);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_descriptor, const void*,
    cudnnTensorDescriptor_t dy_descriptor, const void*, cudnnConvolutionDescriptor_t convolution,
    cudnnFilterDescriptor_t dw_descriptor, void* dw, int wanted, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found, void* workspace, size_t workspace_bytes) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, dw_descriptor->tensor,
                                  dy_descriptor->tensor};
    return Find(machine, handle, plan, BackwardFilter, {workspace, workspace_bytes}, dw,
                plan.w.bytes(), wanted, count, found);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x_descriptor, cudnnTensorDescriptor_t dy_descriptor,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw_descriptor, int wanted,
    int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return CudnnCall([&](Machine&) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, dw_descriptor->tensor,
                                  dy_descriptor->tensor};
    return Guess(plan, BackwardFilter, wanted, count, found);
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_descriptor, const void* x,
    cudnnTensorDescriptor_t dy_descriptor, const void* dy, cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, cudnnFilterDescriptor_t dw_descriptor, void* dw) {
  return CudnnCall([&](Machine& machine) {
    const ConvolutionPlan plan = {*convolution, x_descriptor->tensor, dw_descriptor->tensor,
                                  dy_descriptor->tensor};
    if (!Aligned(x, dw, dy)) return CUDNN_STATUS_BAD_PARAM;
    return Run(machine, handle, plan, BackwardFilter, algorithm, {workspace, workspace_bytes},
               [=, scale = Scale(alpha, beta)](bool repeats) {
                 const std::vector<int64_t> order = OrderOfSamples(plan.samples(), repeats);
                 Write(plan.w, GradientOfFilter(plan, x, dy, order), scale, dw);
               });
  });
}

// Sums of dy over everything but the channels.
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           const void* beta, cudnnTensorDescriptor_t db_descriptor,
                                           void* db) {
  return CudnnCall([&](Machine& machine) {
    const Tensor from = dy_descriptor->tensor;
    const Tensor to = db_descriptor->tensor;
    const std::array<int64_t, 4> dims = {1, from.dims[1], 1, 1};
    if (!from.set || !to.set || from.number != to.number || to.dims != dims) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    return Submit(machine, handle, [=, scale = Scale(alpha, beta)] {
      const std::vector<float> values = Read(from, dy);
      std::vector<float> sums(static_cast<size_t>(from.dims[1]));
      const int64_t plane = from.dims[2] * from.dims[3];
      for (int64_t i = 0; i < from.size(); ++i) sums[i / plane % from.dims[1]] += values[i];
      Write(to, sums, scale, db);
    });
  });
}
