// What a process needs memory for, worked out before it takes any: parts with their sizes and the
// settings that make them so large, and what they add up to.
//
// A value. Sums and products stay at the largest number where they would overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/base/machine_memory.h"
#include "common/base/status.h"

namespace kumo {

class MemoryNeed {
 public:
  struct Part {
    std::string what;
    int64_t bytes = 0;
    std::string settings;  // that make it so large: "sync.minibatch, data.prefetch"; or ""
  };

  // whose: "a worker".
  explicit MemoryNeed(std::string whose) : whose_(std::move(whose)) {}

  // The product of `factors`, none of which is negative; nothing is added for 0 bytes.
  void Add(std::string what, std::initializer_list<int64_t> factors, std::string settings = "");

  const std::string& whose() const { return whose_; }
  const std::vector<Part>& parts() const { return parts_; }
  int64_t bytes() const;

  // A table: "a worker needs 134 MiB (140509184 bytes):", then a line for each part, the largest
  // first.
  std::vector<std::string> Lines() const;
  // The largest parts with their settings: "20.1 GiB for activations (sync.minibatch)".
  std::string Largest() const;

  // FailedPrecondition, naming both amounts, the parts that cost most and their settings, where
  // there is not so much room.
  Status CheckFits(const MemoryRoom& room) const;

 private:
  const std::string whose_;
  std::vector<Part> parts_;
};

// The product of numbers that are not negative; INT64_MAX where it is larger.
int64_t SaturatingProduct(std::initializer_list<int64_t> factors);

}  // namespace kumo
