// Long arrays of numbers or bytes: 64-byte aligned, zero at the start, on transparent huge pages
// where they are long enough for it (first touch of 100 MB costs 35 ms on 4 KiB pages, 7 ms on huge
// ones).
//
// Owned by one, moved not copied. Not thread-safe by itself.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace kumo {

// Zeroed memory aligned to 64 bytes, and a multiple of that long whatever was asked for (for
// lengths of 2 MiB and more to 2 MiB, of huge pages where the kernel has them, and given back to it
// when it is freed). Never null for bytes > 0: where there is no more, the process's new-handler
// (std::set_new_handler) is called as `new` calls it, and the process ends.
void* AllocateAligned(size_t bytes);
// The same, but null where there is no more.
void* TryAllocateAligned(size_t bytes);
// bytes: the same as when it was allocated.
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
