// What a device's memory is used for: every array that is taken, by whom, so that people can be
// told before training starts, and when there is no more. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kumo {

class MemoryLedger {
 public:
  void Add(const void* memory, int64_t bytes, const std::string& what);
  // Returns its bytes: none for memory that was never added.
  int64_t Remove(const void* memory);

  int64_t bytes() const { return bytes_; }
  // "activations 51.2 MB, the weights 1.7 MB, ...": the `most` largest uses, then the rest as one.
  std::string Describe(int most) const;

 private:
  struct Entry {
    int64_t bytes = 0;
    std::string what;
  };
  std::map<const void*, Entry> entries_;
  int64_t bytes_ = 0;
};

// "51.2 MB".
std::string Megabytes(int64_t bytes);

}  // namespace kumo
