// Missing layers: names of layers, losses and operations of other programs that Kumo lacks, each
// with the nearest way to express it (docs/networks.md, "How do I express ...?").
//
// Pure function; thread-safe.
#pragma once

#include <string_view>

namespace kumo {

// The nearest way in words, for a name in any case, with or without '_' and '-'; "" if the name is
// not in the list.
std::string_view NearestWayTo(std::string_view name);

}  // namespace kumo
