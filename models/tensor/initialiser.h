// Initialisers: the content of a tensor before the first step, as a pure function of the seed, the
// tensor's name and its initialiser, so that every process and every device starts from the same
// numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/status.h"
#include "proto/model.pb.h"

namespace kumo {

struct Fans {
  int64_t in = 1;   // inputs that one output sums over
  int64_t out = 1;  // outputs that one input reaches
};

// InvalidArgument ("xavier.magnitude must be ...") for a parameter out of range. An initialiser
// without a kind is valid: the layer's default stands.
Status CheckInitialiser(const model::Initialiser& initialiser);

// Requires an initialiser with a kind that passed CheckInitialiser.
void Initialise(const model::Initialiser& initialiser, const Fans& fans, uint64_t seed,
                std::string_view tensor_name, std::span<float> values);

}  // namespace kumo
