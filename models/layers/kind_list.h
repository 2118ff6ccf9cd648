// Lists that follow from KUMO_OPS (models/layers/ops.h) and KUMO_LOSSES (models/layers/losses.h):
// the variant of the specs, and the kinds of layers of all folders.
//
// Values and pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <variant>
#include <vector>

namespace kumo {

// VariantOf<void, A, B>::type is std::variant<A, B>. With the void in front, a macro can write each
// spec as ", Spec".
template <typename None, typename... Specs>
struct VariantOf {
  using type = std::variant<Specs...>;
};

// The entries of all lists, list by list.
template <typename Kind>
std::vector<Kind> JoinKinds(std::initializer_list<std::span<const Kind>> lists) {
  std::vector<Kind> all;
  for (const std::span<const Kind> list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The entry of a kind; null if there is none.
template <typename Kind, typename Case>
const Kind* FindKind(std::span<const Kind> kinds, Case kind) {
  const auto found = std::ranges::find(kinds, kind, &Kind::kind);
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace kumo
