// Common parts of the fuzz targets. libFuzzer calls LLVMFuzzerTestOneInput with one input after
// another, in one thread; a target reports an error by ending the process (Fail, a sanitizer, a
// CHECK).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace kumo::fuzz {

[[noreturn]] inline void Fail(std::string_view what) {
  std::cerr << "wrong: " << what << std::endl;
  std::abort();
}

inline void Require(bool holds, std::string_view what) {
  if (!holds) Fail(what);
}

// A file without a name in any folder, for readers that need a path.
class InputFile {
 public:
  InputFile() : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    Require(descriptor_ >= 0, "no memory file");
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { close(descriptor_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void Hold(std::string_view bytes) {
    Require(ftruncate(descriptor_, 0) == 0, "the memory file keeps its bytes");
    Require(
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
        "the memory file is full");
  }

 private:
  const int descriptor_;
};

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace kumo::fuzz
