#include "data/samples/sample.h"

#include <cstring>

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

void Sample::KeepEntries(int field, std::span<const int64_t> kept) {
  std::vector<int64_t> size(extents(field).begin(), extents(field).end());
  if (size[0] == std::ssize(kept)) return;
  const std::span<const std::byte> from = values_[field].bytes;
  const size_t entry = from.size() / static_cast<size_t>(size[0]);
  std::byte* to = Make(field, kept.size() * entry).data();
  for (const int64_t i : kept) {
    std::memcpy(to, from.data() + static_cast<size_t>(i) * entry, entry);
    to += entry;
  }
  size[0] = std::ssize(kept);
  SetExtents(field, size);
}

std::span<uint8_t> Sample::MakePixels(int field, std::span<const int64_t> extents) {
  size_t bytes = 1;
  for (const int64_t extent : extents) bytes *= static_cast<size_t>(extent);
  SetExtents(field, extents);
  const std::span<std::byte> room = Make(field, bytes);
  return {reinterpret_cast<uint8_t*>(room.data()), room.size()};
}

}  // namespace kumo
