// The known word that a mistyped one, or another word for the same thing, was most likely meant to
// be.
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

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
// string alignment distance), in bytes; some number above `most` as soon as there are more than
// that.
int EditDistance(std::string_view a, std::string_view b,
                 int most = std::numeric_limits<int>::max());

// The one of `known` that is nearest to `word`, whatever their case, or "" when none is near enough
// to be worth saying. Words longer than 100 bytes are near to nothing, here and below.
std::string Nearest(std::string_view word, std::span<const std::string> known);

// A name, and other words of the field for it, separated by blanks. They are not accepted in the
// name's place: whoever writes one is told the name.
struct KnownName {
  std::string_view name;
  std::string_view also;
};
// Which of `known` are the same word as `word` but for case, '_' and '-', or are also called so;
// where there are none, those that are nearest by spelling. Ascending.
std::vector<size_t> Meant(std::string_view word, std::span<const KnownName> known);

// "; did you mean block.momentum or optimiser.momentum?", or "" for no names.
std::string DidYouMean(std::span<const std::string> names);
// The same for the nearest of `known`.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace kumo
