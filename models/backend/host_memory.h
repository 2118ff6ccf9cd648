// Host memory as a device's memory (device_array.h): really allocated, or only counted, to know the
// memory of a network before it is allocated.
//
// One thread at a time. Arrays are freed before their memory object.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "models/backend/device_array.h"
#include "models/backend/memory_ledger.h"

namespace kumo {

// An array that cannot be allocated is null, and becomes a failure that names it.
class HostMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, const std::string& what) override;
  void Free(void* memory) override;

  const MemoryLedger& ledger() const { return ledger_; }
  // ResourceExhausted for the first array that could not be allocated.
  const Status& failure() const { return failure_; }

 private:
  MemoryLedger ledger_;
  Status failure_;
};

// Allocates nothing: its arrays are empty, and ops with such arrays may be made but not run.
class CountedMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, const std::string& what) override;
  void Free(void*) override {}

  // Sum over all arrays so far.
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace kumo
