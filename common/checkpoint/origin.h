// Origin of initial weights that another job trained, for people. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace kumo {

// Shortens an origin to printable texts and as many entries as a person reads; the last entry tells
// how many were dropped. Idempotent. Origins from peers must pass through it.
checkpoint::Origin Excerpt(const checkpoint::Origin& origin);

// "starts with 6 of 8 tensors from DIR", and one line per tensor that is initialised as usual, per
// unused tensor of the source, and per note.
std::vector<std::string> LinesOf(const checkpoint::Origin& origin);

}  // namespace kumo
