// Owner of an object that CUDA, cuDNN or cuBLAS creates and destroys: streams, events, graphs,
// library handles, descriptors. Moved, not copied.
//
// Not thread-safe; the owner synchronises.
#pragma once

#include <utility>

namespace kumo::cuda {

// T: a pointer-like type whose empty value is null. destroy: what the library calls it; its status
// is dropped, as nobody can use the object any more.
template <typename T, auto destroy>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (value_ != nullptr) (void)destroy(value_);
  }

  T get() const { return value_; }
  // For the library's create function; what was held before is destroyed.
  T* receive() {
    *this = Handle();
    return &value_;
  }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  T value_ = nullptr;
};

}  // namespace kumo::cuda
