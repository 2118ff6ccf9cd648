#include "models/backend/memory_ledger.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace kumo {

void MemoryLedger::Add(const void* memory, int64_t bytes, const std::string& what) {
  entries_[memory] = {bytes, what};
  bytes_ += bytes;
}

int64_t MemoryLedger::Remove(const void* memory) {
  const auto found = entries_.find(memory);
  if (found == entries_.end()) return 0;
  const int64_t bytes = found->second.bytes;
  bytes_ -= bytes;
  entries_.erase(found);
  return bytes;
}

std::string MemoryLedger::Describe(int most) const {
  std::map<std::string, int64_t> uses;
  for (const auto& [memory, entry] : entries_) uses[entry.what] += entry.bytes;
  std::vector<std::pair<int64_t, std::string>> largest;
  for (const auto& [what, bytes] : uses) largest.emplace_back(bytes, what);
  std::sort(largest.rbegin(), largest.rend());
  std::string text;
  int64_t rest = bytes_;
  constexpr int64_t kWorthALine = 50'000;
  for (size_t i = 0; i < largest.size() && i < static_cast<size_t>(most); ++i) {
    if (i > 0 && largest[i].first < kWorthALine) break;
    text += (text.empty() ? "" : ", ") + largest[i].second + " " + Megabytes(largest[i].first);
    rest -= largest[i].first;
  }
  if (rest >= kWorthALine) text += ", the rest " + Megabytes(rest);
  return text.empty() ? "nothing" : text;
}

std::string Megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MB", static_cast<double>(bytes) * 1e-6);
  return text;
}

}  // namespace kumo
