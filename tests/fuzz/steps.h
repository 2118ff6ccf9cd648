// Steps: a fuzzer's input as a sequence of events for a state machine.
//
//   input = start step*       start: u8, where the conversation begins
//   step  = what  later  header-length  payload-length  header  payload
//           u8    u8     u16            u16
//
// Lengths are little-endian; a truncated part is as long as the input has bytes, so every input is
// valid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/transport/message.h"

namespace kumo::fuzz {

constexpr size_t kMostSteps = 64;

struct Step {
  uint8_t what = 0;
  uint8_t later = 0;  // milliseconds after the step before
  std::string_view header, payload;
};

class StepReader {
 public:
  explicit StepReader(std::string_view bytes) : bytes_(bytes), start_(Take(1)) {}

  uint8_t start() const { return start_.empty() ? 0 : static_cast<uint8_t>(start_[0]); }
  bool Next(Step* step) {
    if (bytes_.empty() || steps_++ == kMostSteps) return false;
    const std::string_view fixed = Take(6);
    const auto at = [&](size_t i) -> size_t {
      return i < fixed.size() ? static_cast<uint8_t>(fixed[i]) : 0;
    };
    step->what = static_cast<uint8_t>(at(0));
    step->later = static_cast<uint8_t>(at(1));
    step->header = Take(at(2) | at(3) << 8);
    step->payload = Take(at(4) | at(5) << 8);
    return true;
  }

 private:
  std::string_view Take(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view bytes_;
  const std::string_view start_;
  size_t steps_ = 0;
};

// Requires a header and a payload below 64 KiB.
inline std::string WrittenStep(uint8_t what, uint8_t later, std::string_view header,
                               std::string_view payload) {
  std::string bytes = {static_cast<char>(what), static_cast<char>(later)};
  for (const size_t size : {header.size(), payload.size()}) {
    bytes.push_back(static_cast<char>(size & 255));
    bytes.push_back(static_cast<char>(size >> 8));
  }
  return bytes.append(header).append(payload);
}

// A copy, so that a read past its end is caught.
inline Payload PayloadOf(std::string_view bytes) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.size());
  std::transform(bytes.begin(), bytes.end(), copy->begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return {copy, std::span<const std::byte>(*copy)};
}

}  // namespace kumo::fuzz
