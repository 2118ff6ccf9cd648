#include "common/base/memory_need.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/human_readable.h"

namespace kumo {
namespace {

// Only what is worth an error's reader's time is named there.
constexpr size_t kMostNamed = 3;
constexpr int64_t kWorthNaming = 10;  // a tenth of the whole

int64_t SaturatingSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::vector<MemoryNeed::Part> LargestFirst(std::vector<MemoryNeed::Part> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return parts;
}

}  // namespace

int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

void MemoryNeed::Add(std::string what, std::initializer_list<int64_t> factors,
                     std::string settings) {
  const int64_t bytes = SaturatingProduct(factors);
  if (bytes > 0) parts_.push_back({std::move(what), bytes, std::move(settings)});
}

int64_t MemoryNeed::bytes() const {
  int64_t sum = 0;
  for (const Part& part : parts_) sum = SaturatingSum(sum, part.bytes);
  return sum;
}

std::vector<std::string> MemoryNeed::Lines() const {
  size_t widest = 0;
  for (const Part& part : parts_) widest = std::max(widest, part.what.size());
  std::vector<std::string> lines = {whose_ + " needs " + HumanBytes(bytes()) + " (" +
                                    std::to_string(bytes()) + " bytes):"};
  constexpr size_t kSizeWidth = 8;  // "1023 MiB"
  for (const Part& part : LargestFirst(parts_)) {
    const std::string size = HumanBytes(part.bytes);
    std::string line = "  " + Padded(part.what, widest) + "  " +
                       std::string(kSizeWidth - std::min(kSizeWidth, size.size()), ' ') + size;
    if (!part.settings.empty()) line += "  " + part.settings;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string MemoryNeed::Largest() const {
  std::string text;
  size_t named = 0;
  for (const Part& part : LargestFirst(parts_)) {
    if (named++ == kMostNamed || part.bytes < bytes() / kWorthNaming) break;
    text += (text.empty() ? "" : ", ") + HumanBytes(part.bytes) + " for " + part.what;
    if (!part.settings.empty()) text += " (" + part.settings + ")";
  }
  return text;
}

Status MemoryNeed::CheckFits(const MemoryRoom& room) const {
  if (static_cast<uint64_t>(bytes()) <= room.bytes) return OkStatus();
  return FailedPrecondition(
      "memory: " + whose_ + " needs " + HumanBytes(bytes()) + ", " + room.limit + " has room for " +
      HumanBytes(room.bytes) + "; most is " + Largest() +
      ": lower what is named, start fewer processes, or run them where there is more");
}

}  // namespace kumo
