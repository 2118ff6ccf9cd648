// What is told of a job that began with another one's weights.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace kumo {

// The same with short printable texts and no more of them than a person reads; the last says how
// many there were. Of one that is short already it is the same. What a peer sent must go through
// it.
checkpoint::Origin Excerpt(const checkpoint::Origin& origin);

// "starts with 6 of 8 tensors from DIR", and a line for each that is initialised as usual,
// and for each of there that is not used.
std::vector<std::string> LinesOf(const checkpoint::Origin& origin);

}  // namespace kumo
