// The CPU's memory as a device's (device_array.h): really taken, or only counted, to know what a
// network would take before it takes it.
//
// One thread at a time. Arrays are freed before their memory is gone.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "models/backend/device_array.h"
#include "models/backend/memory_ledger.h"

namespace kumo {

// An array that cannot be had is null, and a failure that names it.
class HostMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, const std::string& what) override;
  void Free(void* memory) override;

  const MemoryLedger& ledger() const { return ledger_; }
  // ResourceExhausted for the first array that could not be had.
  const Status& failure() const { return failure_; }

 private:
  MemoryLedger ledger_;
  Status failure_;
};

// Hands out nothing: arrays of it are empty, and what uses them may be made but not run.
class CountedMemory final : public DeviceMemory {
 public:
  void* Allocate(size_t bytes, const std::string& what) override;
  void Free(void*) override {}

  // Of all arrays so far.
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace kumo
