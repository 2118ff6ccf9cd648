// Element of an activation array by sample, channel, row and column.
#pragma once

#include <cstdint>

#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {

// One number of an array of samples x channels x height x width, in either layout.
template <typename T>
struct PlaneElement {
  int64_t sample;
  int64_t channel;
  int row;
  int column;

  // Place of element i in memory.
  __device__ static PlaneElement Of(int64_t i, int64_t channels, int height, int width) {
    PlaneElement element{};
    if (kChannelsLast<T>) {
      element.channel = i % channels;
      i /= channels;
    }
    element.column = static_cast<int>(i % width);
    i /= width;
    element.row = static_cast<int>(i % height);
    i /= height;
    if (!kChannelsLast<T>) {
      element.channel = i % channels;
      i /= channels;
    }
    element.sample = i;
    return element;
  }
  // Position of the number at another row and column, in a plane of that size.
  __device__ int64_t At(int y, int x, int64_t channels, int height, int width) const {
    if (kChannelsLast<T>) return ((sample * height + y) * width + x) * channels + channel;
    return ((sample * channels + channel) * height + y) * width + x;
  }
};

}  // namespace kumo::cuda
