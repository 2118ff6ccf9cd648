// Queue of a device: its memory, and copies in and out.
//
// Work is queued and done in order. The next call may use data that a call writes to the device;
// the host knows the data after Read or Wait. A device that has failed does nothing any more; Read
// and Wait return the failure. Arrays of the device's memory are DeviceArray.
//
// A part of Backend. Not thread-safe: one caller at a time (gradient_codec.h has the exception).
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "models/backend/device_array.h"

namespace kumo {

class DeviceQueue : public DeviceMemory {
 public:
  // Copies from the host, which may change `from` after the call.
  virtual void Write(const void* from, size_t bytes, void* to) = 0;
  // Copies to the host when everything queued before is done. Returns the device's failure.
  virtual Status Read(const void* from, size_t bytes, void* to) = 0;
  // Copies within the device.
  virtual void Copy(const void* from, size_t bytes, void* to) = 0;
  virtual void Zero(void* memory, size_t bytes) = 0;
  // Uses of the memory, for people: "activations 51.2 MB, the weights 1.7 MB".
  virtual std::string DescribeMemory() const = 0;
  // Waits until everything queued is done. Returns the first failure: ResourceExhausted, or
  // Internal, which names the call and the layer.
  virtual Status Wait() = 0;
};

}  // namespace kumo
