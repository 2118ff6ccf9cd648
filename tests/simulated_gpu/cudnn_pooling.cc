// cuDNN's pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include <cudnn.h>

#include "tests/simulated_gpu/cudnn_objects.h"

namespace kumo::simulated_gpu {
namespace {

struct Plan {
  cudnnPoolingStruct pooling;
  Tensor x;
  Tensor y;

  bool fits() const {
    if (!pooling.set || !x.set || !y.set || x.number != y.number) return false;
    for (size_t d = 0; d < 2; ++d) {
      // Each window holds a number at least.
      if (pooling.pad[d] >= pooling.window[d]) return false;
      if (x.dims[d] != y.dims[d]) return false;
      if (y.dims[d + 2] !=
          Positions(x.dims[d + 2], pooling.window[d], pooling.pad[d], pooling.stride[d])) {
        return false;
      }
    }
    return true;
  }
  bool averages() const {
    return pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ||
           pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  }
};

// What lies under the window of output i: each(index into x) for its numbers; how many they are.
template <typename Each>
int64_t ForEachUnder(const Plan& plan, int64_t i, Each each) {
  const auto [n, c, height, width] = plan.x.dims;
  const int64_t rows = plan.y.dims[2];
  const int64_t columns = plan.y.dims[3];
  const int64_t plane = i / (rows * columns);
  const int64_t top = i / columns % rows * plan.pooling.stride[0] - plan.pooling.pad[0];
  const int64_t left = i % columns * plan.pooling.stride[1] - plan.pooling.pad[1];
  const int64_t bottom = std::min(top + plan.pooling.window[0], height);
  const int64_t right = std::min(left + plan.pooling.window[1], width);
  int64_t count = 0;
  for (int64_t h = std::max<int64_t>(top, 0); h < bottom; ++h) {
    for (int64_t w = std::max<int64_t>(left, 0); w < right; ++w) {
      each((plane * height + h) * width + w);
      ++count;
    }
  }
  return count;
}

// The maximum's place: the first by the deterministic mode, and the last by the other, which
// promises nothing. A number that is not one is the greatest.
int64_t PlaceOfMaximum(const Plan& plan, int64_t i, const std::vector<float>& x) {
  const bool first = plan.pooling.mode == CUDNN_POOLING_MAX_DETERMINISTIC;
  int64_t place = -1;
  ForEachUnder(plan, i, [&](int64_t at) {
    if (place < 0 || (!std::isnan(x[place]) &&
                      (std::isnan(x[at]) || x[at] > x[place] || (!first && x[at] == x[place])))) {
      place = at;
    }
  });
  return place;
}

// Over how many numbers a window's sum is averaged.
float CountOf(const Plan& plan, int64_t under) {
  const bool padding_counts = plan.pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  return static_cast<float>(padding_counts ? plan.pooling.window[0] * plan.pooling.window[1]
                                           : under);
}

std::vector<float> Pool(const Plan& plan, const std::vector<float>& x) {
  std::vector<float> y(static_cast<size_t>(plan.y.size()));
  for (int64_t i = 0; i < plan.y.size(); ++i) {
    if (plan.averages()) {
      float sum = 0;
      const int64_t under = ForEachUnder(plan, i, [&](int64_t at) { sum += x[at]; });
      y[i] = sum / CountOf(plan, under);
    } else {
      y[i] = x[PlaceOfMaximum(plan, i, x)];
    }
  }
  return y;
}

std::vector<float> Spread(const Plan& plan, const std::vector<float>& x,
                          const std::vector<float>& dy) {
  std::vector<float> dx(static_cast<size_t>(plan.x.size()));
  for (int64_t i = 0; i < plan.y.size(); ++i) {
    if (plan.averages()) {
      const int64_t under = ForEachUnder(plan, i, [](int64_t) {});
      const float each = dy[i] / CountOf(plan, under);
      ForEachUnder(plan, i, [&](int64_t at) { dx[at] += each; });
    } else {
      dx[PlaceOfMaximum(plan, i, x)] += dy[i];
    }
  }
  return dx;
}

}  // namespace
}  // namespace kumo::simulated_gpu

using namespace kumo::simulated_gpu;

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, cudnnTensorDescriptor_t x_descriptor,
                                  const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_descriptor, void* y) {
  return CudnnCall([&](Machine& machine) {
    const Plan plan = {*pooling, x_descriptor->tensor, y_descriptor->tensor};
    if (!plan.fits()) return CUDNN_STATUS_BAD_PARAM;
    return Submit(machine, handle, [=, scale = Scale(alpha, beta)] {
      Write(plan.y, Pool(plan, Read(plan.x, x)), scale, y);
    });
  });
}

// y is read where it is not needed, so that an array that is gone is seen.
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, cudnnTensorDescriptor_t y_descriptor,
                                   const void* y, cudnnTensorDescriptor_t dy_descriptor,
                                   const void* dy, cudnnTensorDescriptor_t x_descriptor,
                                   const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return CudnnCall([&](Machine& machine) {
    const Plan plan = {*pooling, x_descriptor->tensor, y_descriptor->tensor};
    const Tensor grad_output = dy_descriptor->tensor;
    const Tensor grad_input = dx_descriptor->tensor;
    if (!plan.fits() || grad_output != plan.y || grad_input != plan.x) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    return Submit(machine, handle, [=, scale = Scale(alpha, beta)] {
      (void)Read(plan.y, y);
      Write(grad_input, Spread(plan, Read(plan.x, x), Read(grad_output, dy)), scale, dx);
    });
  });
}
