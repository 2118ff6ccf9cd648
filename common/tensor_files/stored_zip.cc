#include "common/tensor_files/stored_zip.h"

#include <zlib.h>

#include <limits>
#include <utility>

namespace kumo {
namespace {

constexpr uint16_t kVersion = 20;
constexpr uint16_t kUtf8 = 1 << 11;           // names
constexpr uint16_t kFirstDay = (1 << 5) | 1;  // 1 January 1980: equal members give equal bytes
constexpr uint64_t kMostBytes = std::numeric_limits<uint32_t>::max();
constexpr size_t kMostMembers = std::numeric_limits<uint16_t>::max() - 1;
// Fixed bytes per member in headers and directory.
constexpr uint64_t kHeaderBytes = 256;

void Put16(uint32_t number, std::string* out) {
  *out += static_cast<char>(number & 0xff);
  *out += static_cast<char>((number >> 8) & 0xff);
}
void Put32(uint32_t number, std::string* out) {
  Put16(number & 0xffff, out);
  Put16(number >> 16, out);
}

uint32_t Crc32Of(std::span<const std::span<const std::byte>> parts) {
  uLong crc = crc32_z(0, nullptr, 0);
  for (const std::span<const std::byte> part : parts) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

std::string StoredZip::CommonFields(const Member& member) {
  std::string fields;
  Put16(kVersion, &fields);
  Put16(kUtf8, &fields);
  Put16(0, &fields);  // stored
  Put16(0, &fields);  // midnight
  Put16(kFirstDay, &fields);
  Put32(member.crc, &fields);
  Put32(member.bytes, &fields);
  Put32(member.bytes, &fields);
  Put16(static_cast<uint32_t>(member.name.size()), &fields);
  Put16(0, &fields);  // no more fields
  return fields;
}

Status StoredZip::Append(std::span<const std::byte> bytes) {
  at_ += bytes.size();
  return file_.Append(bytes);
}

Status StoredZip::Add(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  uint64_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  uint64_t names = 2 * (name.size() + kHeaderBytes);
  for (const Member& member : members_) names += member.name.size() + kHeaderBytes;
  if (bytes > kMostBytes || at_ + bytes + names > kMostBytes || members_.size() == kMostMembers) {
    return InvalidArgument("more than 4 GiB or 65534 members, the limits of this zip format");
  }
  Member member = {name, Crc32Of(parts), static_cast<uint32_t>(bytes), static_cast<uint32_t>(at_)};
  std::string header = "PK\x03\x04";
  header += CommonFields(member) + name;
  KUMO_RETURN_IF_ERROR(Append(AsBytes(header)));
  for (const std::span<const std::byte> part : parts) KUMO_RETURN_IF_ERROR(Append(part));
  members_.push_back(std::move(member));
  return OkStatus();
}

Status StoredZip::Finish() {
  const uint64_t begin = at_;
  for (const Member& member : members_) {
    std::string record = "PK\x01\x02";
    Put16(kVersion, &record);
    record += CommonFields(member);
    Put16(0, &record);  // no comment
    Put16(0, &record);  // the first disk
    Put16(0, &record);  // no text
    Put32(0, &record);  // no attributes
    Put32(member.offset, &record);
    record += member.name;
    KUMO_RETURN_IF_ERROR(Append(AsBytes(record)));
  }
  const auto members = static_cast<uint32_t>(members_.size());
  std::string end = "PK\x05\x06";
  Put32(0, &end);  // disks
  Put16(members, &end);
  Put16(members, &end);
  Put32(static_cast<uint32_t>(at_ - begin), &end);
  Put32(static_cast<uint32_t>(begin), &end);
  Put16(0, &end);  // no comment
  return Append(AsBytes(end));
}

}  // namespace kumo
