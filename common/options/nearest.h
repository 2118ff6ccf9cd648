// The known word that a mistyped one was most likely meant to be.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kumo {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
// string alignment distance), in bytes.
int EditDistance(std::string_view a, std::string_view b);

// The one of `known` that is nearest to `word`, or "" when none is near enough to be worth saying.
// A word that misses or mistakes only its section ("minibatch", "block.minibatch") counts as near
// to the key of the same name ("sync.minibatch"). Words longer than 100 bytes are near to nothing.
std::string Nearest(std::string_view word, std::span<const std::string> known);

// "; did you mean sync.minibatch?", or "" when nothing is near.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace kumo
