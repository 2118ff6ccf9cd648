#include "data/samples/sample.h"

namespace kumo {

void Sample::Reset(const Fields& fields) {
  for (size_t f = 0; f < fields.size(); ++f) SetExtents(static_cast<int>(f), fields[f].extents);
}

void Sample::SetExtents(int field, std::span<const int64_t> extents) {
  values_[field].extents.assign(extents.begin(), extents.end());
}

std::span<std::byte> Sample::Make(int field, size_t bytes) {
  Value& value = values_[field];
  std::vector<std::byte>& own = value.own[value.next];
  value.next = 1 - value.next;
  if (own.size() < bytes) own.resize(bytes);
  const std::span<std::byte> room(own.data(), bytes);
  value.bytes = room;
  return room;
}

Sample& Sample::Partner(const Fields& fields) {
  if (partner_ == nullptr) partner_ = std::make_unique<Sample>(fields);
  partner_->Reset(fields);
  return *partner_;
}

std::span<uint8_t> Sample::MakePixels(int field, std::span<const int64_t> extents) {
  size_t bytes = 1;
  for (const int64_t extent : extents) bytes *= static_cast<size_t>(extent);
  SetExtents(field, extents);
  const std::span<std::byte> room = Make(field, bytes);
  return {reinterpret_cast<uint8_t*>(room.data()), room.size()};
}

}  // namespace kumo
