#include "data/sample.h"

namespace kumo {

std::span<std::byte> Sample::Make(int field, size_t bytes) {
  Value& value = values_[field];
  std::vector<std::byte>& own = value.own[value.next];
  value.next = 1 - value.next;
  if (own.size() < bytes) own.resize(bytes);
  const std::span<std::byte> room(own.data(), bytes);
  value.bytes = room;
  return room;
}

}  // namespace kumo
