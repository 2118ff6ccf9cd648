// Buffer: a long array, 64-byte aligned, zero-initialised, and on transparent huge pages if it is
// long enough (the first touch of 100 MB costs 35 ms on 4 KiB pages, 7 ms on huge pages).
//
// Movable, not copyable. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace kumo {

// Returns zeroed memory aligned to 64 bytes, its length rounded up to a multiple of 64 bytes (from
// 2 MiB on to 2 MiB, on huge pages if the kernel has them; such memory goes back to the kernel when
// freed). Never null for bytes > 0: if memory is short, calls the process's new-handler
// (std::set_new_handler), which ends a process of Kumo's, and without one throws std::bad_alloc, as
// `new` does.
void* AllocateAligned(size_t bytes);
// Like AllocateAligned, but returns null if memory is short.
void* TryAllocateAligned(size_t bytes);
// bytes: as passed to the allocation.
void FreeAligned(void* memory, size_t bytes);

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(AllocateAligned(size * sizeof(T))),
              Free{size * sizeof(T)}),
        size_(size) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  void Zero() {
    if (size_ > 0) std::memset(static_cast<void*>(data()), 0, size_ * sizeof(T));
  }

 private:
  struct Free {
    size_t bytes = 0;
    void operator()(T* memory) const { FreeAligned(memory, bytes); }
  };
  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
};

}  // namespace kumo
