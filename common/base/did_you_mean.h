// Suggestions for mistyped words: the known word that was most likely meant, by spelling or by
// synonym.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kumo {

// Returns the optimal string alignment distance in bytes: the insertions, deletions, replacements
// and swaps of neighbours that turn `a` into `b`. Returns some number above `most` if the distance
// exceeds `most`.
int EditDistance(std::string_view a, std::string_view b,
                 int most = std::numeric_limits<int>::max());

// Returns the word of `known` nearest to `word`, ignoring case, or "" if none is near enough to
// suggest. Words longer than 100 bytes have no suggestions, here and below.
std::string Nearest(std::string_view word, std::span<const std::string> known);

// A name with its synonyms, separated by blanks. Synonyms are not accepted in place of the name;
// they only lead to the suggestion of the name.
struct KnownName {
  std::string_view name;
  std::string_view also;
};
// Returns the indices in `known` of the names that equal `word` or have it as a synonym, ignoring
// case, '_' and '-'; if there are none, the names nearest by spelling, at most `most_edits` away.
// Ascending.
inline constexpr int kMostEdits = 2;
std::vector<size_t> Meant(std::string_view word, std::span<const KnownName> known,
                          int most_edits = kMostEdits);

// "; did you mean block.momentum or optimiser.momentum?", or "" for no names.
std::string DidYouMean(std::span<const std::string> names);
// The same text for the word of `known` that is nearest to `word`.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace kumo
