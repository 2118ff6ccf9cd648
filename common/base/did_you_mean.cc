#include "common/base/did_you_mean.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr size_t kLongestWord = 100;

// The spelling without case, '_' and '-'.
std::string Bare(std::string_view word) {
  std::string bare = LowerCase(word);
  std::erase_if(bare, [](char c) { return c == '_' || c == '-'; });
  return bare;
}

// Removes and returns the first of `words`; "" at the end.
std::string_view TakeWord(std::string_view* words) {
  words->remove_prefix(std::min(words->find_first_not_of(' '), words->size()));
  const std::string_view word = words->substr(0, words->find(' '));
  words->remove_prefix(word.size());
  return word;
}

// The smallest distance between `bare` and the name or one of its synonyms, if at most `most`.
int Distance(std::string_view bare, const KnownName& known, int most) {
  int least = EditDistance(bare, Bare(known.name), most);
  std::string_view words = known.also;
  for (std::string_view word = TakeWord(&words); !word.empty(); word = TakeWord(&words)) {
    least = std::min(least, EditDistance(bare, Bare(word), most));
  }
  return least;
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b, int most) {
  const auto lengths = std::minmax({a.size(), b.size()});
  if (most < 0 || lengths.second - lengths.first > static_cast<size_t>(most)) return most + 1;
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
    // Later rows build on one of these two rows and cannot have a smaller distance.
    const auto fewest = [](const std::vector<int>& of) { return *std::ranges::min_element(of); };
    if (fewest(last) > most && fewest(before_last) > most) return most + 1;
  }
  return last[b.size()];
}

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string lower = LowerCase(word);
  int near = std::max(2, static_cast<int>(word.size()) / 3) - 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(lower, LowerCase(candidate), near);
    if (distance > near) continue;
    near = distance - 1;
    nearest = candidate;
  }
  return nearest;
}

std::vector<size_t> Meant(std::string_view word, std::span<const KnownName> known, int most_edits) {
  const std::string bare = Bare(word);
  if (bare.empty() || word.size() > kLongestWord) return {};
  // For a short word, few edits reach any other word.
  int least = std::min<int>(most_edits, static_cast<int>(bare.size()) / 4);
  std::vector<size_t> meant;
  for (size_t i = 0; i < known.size(); ++i) {
    const int distance = Distance(bare, known[i], least);
    if (distance > least) continue;
    if (distance < least) meant.clear();
    least = distance;
    meant.push_back(i);
  }
  return meant;
}

std::string DidYouMean(std::span<const std::string> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "; did you mean " : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text.empty() ? "" : text + "?";
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace kumo
