// Arrays in a device's memory, and who hands it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace kumo {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Memory that is zero, aligned to 64 bytes at the least, and a CPU's a multiple of that long,
  // whatever was asked for. Null for 0 bytes, when there is not enough, which is remembered as the
  // device's failure and names `what`, and when something has failed before.
  virtual void* Allocate(size_t bytes, const std::string& what) = 0;
  // Gives memory back that nothing uses any more; null is nothing.
  virtual void Free(void* memory) = 0;
};

// Numbers in a device's memory, zero at the start, freed before it is gone. Empty where they could
// not be had. Moved, not copied.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // `what` it is for, as an error is to name it. See DeviceMemory::Allocate.
  DeviceArray(DeviceMemory& memory, int64_t size, const std::string& what)
      : DeviceArray(memory, memory.Allocate(static_cast<size_t>(size) * sizeof(T), what), size) {}
  // Takes over what was allocated for it; null is an empty array.
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
