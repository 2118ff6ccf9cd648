// Minibatches of images that lie on the device as bytes: cropped, mirrored, without the mean,
// scaled. The host's bits in float32: a difference and a product, which nothing can contract.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// Number `place` of a window of an image.
__device__ uint8_t PixelOf(const Images& images, const uint8_t* image, uint32_t place,
                           const Window& window, uint8_t pad_value) {
  const auto width = static_cast<uint32_t>(images.width);
  const uint32_t of_plane = place % (width * static_cast<uint32_t>(images.height));
  const auto x = static_cast<int>(of_plane % width);
  const int row = window.top + static_cast<int>(of_plane / width);
  const int column = window.left + (window.mirrored ? images.width - 1 - x : x);
  if (row < 0 || row >= images.height || column < 0 || column >= images.width) return pad_value;
  return image[place - of_plane + static_cast<uint32_t>(row) * width +
               static_cast<uint32_t>(column)];
}

template <typename T>
__global__ void GatherKernel(ActivationShape shape, Images images, PixelNumbers numbers, T* inputs,
                             int32_t* labels) {
  const int64_t size = shape.channels * shape.plane;
  for (int64_t i = FirstOfThread(); i < shape.batch * size; i += ThreadsOfGrid()) {
    const int64_t sample = i / size;
    const auto place = static_cast<uint32_t>(i - sample * size);
    const int64_t index = images.indices == nullptr ? sample : images.indices[sample];
    const uint8_t* const image = images.pixels + index * size;
    const uint8_t pixel =
        images.windows == nullptr
            ? image[place]
            : PixelOf(images, image, place, images.windows[sample], numbers.pad_value);
    auto x = static_cast<float>(pixel);
    if (numbers.mean != nullptr) x -= numbers.mean[place];
    Store(numbers.scale * x, inputs + sample * size + PlaceOf<T>(shape, place));
    if (place == 0) labels[sample] = images.labels[index];
  }
}

}  // namespace

cudaError_t Gather(const Launch& launch, const ActivationShape& shape, const Images& images,
                   const PixelNumbers& numbers, void* inputs, int32_t* labels) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, GatherKernel<T>, BlocksFor(launch, shape.size()), shape, images, numbers,
                 static_cast<T*>(inputs), labels);
  });
}

}  // namespace kumo::cuda
