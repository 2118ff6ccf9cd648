// A device's memory, and copies in and out of it.
//
// Work is queued, and done in order: what a call writes to the device may be used by the next call,
// and is known to the host after Read or Wait. A device that fails does nothing any more; Read and
// Wait say why. Arrays of its memory are DeviceArray.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "models/backend/device_array.h"

namespace kumo {

class DeviceQueue : public DeviceMemory {
 public:
  // Copies from the host, which may change `from` as soon as the call returns.
  virtual void Write(const void* from, size_t bytes, void* to) = 0;
  // Copies to the host when everything queued before is done. The device's failure.
  virtual Status Read(const void* from, size_t bytes, void* to) = 0;
  // Copies within the device.
  virtual void Copy(const void* from, size_t bytes, void* to) = 0;
  virtual void Zero(void* memory, size_t bytes) = 0;
  // What it is used for, for people: "activations 51.2 MB, the weights 1.7 MB".
  virtual std::string DescribeMemory() const = 0;
  // Waits until everything queued is done. The first failure: ResourceExhausted, or Internal naming
  // the call and the layer.
  virtual Status Wait() = 0;
};

}  // namespace kumo
