// FNV-1a hash, 64 bits (Fowler, Noll, Vo): short fingerprints of settings and names. Not resistant
// to chosen collisions.
//
// A value; not synchronised.
#pragma once

#include <cstdint>
#include <string_view>

namespace kumo {

class Fnv1a {
 public:
  // Adds bytes without their length; add the length too if adjacent parts could be confused.
  void Add(std::string_view bytes) {
    for (char c : bytes) AddByte(static_cast<unsigned char>(c));
  }
  // Adds the number as 8 little-endian bytes.
  void Add(uint64_t number) {
    for (int i = 0; i < 8; ++i) AddByte(static_cast<unsigned char>(number >> (8 * i)));
  }
  uint64_t value() const { return hash_; }

 private:
  void AddByte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001B3ull; }

  uint64_t hash_ = 0xCBF29CE484222325ull;
};

}  // namespace kumo
