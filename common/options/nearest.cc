#include "common/options/nearest.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace kumo {
namespace {

constexpr size_t kLongestWord = 100;

std::string_view AfterDot(std::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<int> before_last(columns), last(columns), row(columns);
  for (size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < columns; ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  if (word.empty() || word.size() > kLongestWord) return "";
  const int limit = std::max(2, static_cast<int>(word.size()) / 3);
  // By cost, then by distance: the same name in another section costs little, but a mistyped
  // section is more likely meant to be the one that it looks like.
  std::pair<int, int> best_cost(limit, std::numeric_limits<int>::max());
  const std::string* best = nullptr;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(word, candidate);
    const bool same_name = AfterDot(word) == AfterDot(candidate);
    const std::pair<int, int> cost(same_name ? std::min(distance, 2) : distance, distance);
    if (cost < best_cost) {
      best_cost = cost;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace kumo
