// The protocol's version; docs/formats.md is the grammar.
#pragma once

#include <cstdint>

namespace kumo {

// Raised when processes of two releases could misunderstand each other.
constexpr uint32_t kProtocolVersion = 3;

}  // namespace kumo
