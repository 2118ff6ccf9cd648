// How minibatches become inputs on a device that makes them of bytes by a formula
// (common/job/pixels.h): sent by the host, or of a data set that the device keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/job/pixels.h"
#include "models/tensor.h"

namespace kumo {

// A data set in a device's memory.
class DeviceSamples {
 public:
  virtual ~DeviceSamples() = default;
  virtual int64_t bytes() const = 0;
};

class InputLoader {
 public:
  virtual ~InputLoader() = default;

  // A minibatch of bytes to inputs in the device's layout, and its labels. The bytes may change as
  // soon as it returns.
  virtual void Load(const PixelBatch& batch, void* inputs, int32_t* labels) = 0;
  // The same of what KeepSamples made. Requires indices of samples there, and as many windows or
  // none.
  virtual void Load(const DeviceSamples& samples, std::span<const int64_t> indices,
                    std::span<const Window> windows, void* inputs, int32_t* labels) = 0;

  // A copy of a data set of such images, one byte a pixel, so that a minibatch costs no more than
  // its indices and windows. Null where the device has no room that leaves `reserve` bytes to
  // arrays that are to come.
  virtual std::unique_ptr<DeviceSamples> KeepSamples(std::span<const uint8_t> pixels,
                                                     std::span<const uint8_t> labels,
                                                     int64_t reserve) = 0;
};

}  // namespace kumo
