// Ledger of a device's memory: every allocated array and its use, to show people before training
// starts and if the memory is exhausted. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kumo {

class MemoryLedger {
 public:
  void Add(const void* memory, int64_t bytes, const std::string& what);
  // Returns the bytes of the memory: 0 for memory that was never added.
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
