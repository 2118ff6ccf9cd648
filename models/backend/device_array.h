// Arrays in a device's memory, and the interface that allocates them.
//
// An array has one owner. Not thread-safe: one caller at a time, as for the backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace kumo {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Allocates zeroed memory, aligned to at least 64 bytes; on the CPU the length is rounded up to a
  // multiple of 64. Null for 0 bytes, after a failure, and if there is not enough memory: this is
  // remembered as the device's failure, which names `what`.
  virtual void* Allocate(size_t bytes, const std::string& what) = 0;
  // Frees memory that nothing uses any more; null is ignored.
  virtual void Free(void* memory) = 0;
};

// Array in a device's memory, zero at the start, freed before the device's memory object. Empty if
// it could not be allocated. Moved, not copied.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // what: the use of the array, for errors. See DeviceMemory::Allocate.
  DeviceArray(DeviceMemory& memory, int64_t size, const std::string& what)
      : DeviceArray(memory, memory.Allocate(static_cast<size_t>(size) * sizeof(T), what), size) {}
  // Takes ownership of allocated memory; null is an empty array.
  DeviceArray(DeviceMemory& memory, void* allocated, int64_t size)
      : memory_(&memory),
        data_(static_cast<T*>(allocated)),
        size_(allocated != nullptr ? size : 0) {}
  DeviceArray(DeviceArray&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~DeviceArray() {
    if (data_ != nullptr) memory_->Free(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  bool empty() const { return size_ == 0; }

 private:
  DeviceMemory* memory_ = nullptr;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace kumo
