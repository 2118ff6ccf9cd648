// Exponential of a vector's lanes, for kernel sources, in namespace KUMO_ISA.
//
// x = k ln 2 + r with |r| <= ln 2 / 2, exp(r) - 1 by its Taylor polynomial (the first omitted term,
// r^9/9!, is below 2^-33 of r), and exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1). For k = 0 this keeps
// all bits of a small x.
#pragma once

#include "models/backend/cpu/vector.h"

namespace kumo::KUMO_ISA {

// exp(x) = scale (1 + rest).
struct Exponential {
  Vector scale;
  Vector rest;
};

// Requires |x| <= 80.
KUMO_ALWAYS_INLINE Exponential ExpInParts(Vector x) {
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
  const Vector magic = Broadcast(12582912.0f);
  const Vector k = (x * 1.44269504f + magic) - magic;
  // ln 2 in two parts: the first has zeros at the end, so that k * first is exact.
  const Vector r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  Vector p = Broadcast(1.0f / 40320);
  p = p * r + 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r * r + r;
  const IntVector bits = (__builtin_convertvector(k, IntVector) + 127) << 23;
  Vector scale;
  __builtin_memcpy(&scale, &bits, sizeof(scale));
  return {scale, p};
}

// Both require |x| <= 80.
KUMO_ALWAYS_INLINE Vector ExpMinus1(Vector x) {
  const Exponential e = ExpInParts(x);
  return e.scale * e.rest + (e.scale - 1.0f);
}
KUMO_ALWAYS_INLINE Vector Exp(Vector x) {
  const Exponential e = ExpInParts(x);
  return e.scale * e.rest + e.scale;
}

KUMO_ALWAYS_INLINE Vector Clamp(Vector x, float low, float high) {
  x = Select(x < low, Broadcast(low), x);
  return Select(x > high, Broadcast(high), x);  // a NaN stays one
}

}  // namespace kumo::KUMO_ISA
