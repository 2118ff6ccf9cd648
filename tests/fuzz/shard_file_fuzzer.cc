// Shard files, as they come and with all checksums made right: behind those nothing may be believed
// either.
#include <cstring>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "common/checkpoint/shard_file.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/fuzz/fuzzer.h"

namespace kumo::fuzz {
namespace {

constexpr size_t kHeaderBytes = 72, kRecordBytes = 48, kFooterBytes = 32;

void Put(std::string* bytes, size_t offset, uint32_t value) {
  std::memcpy(bytes->data() + offset, &value, sizeof(value));
}

void Seal(std::string* bytes, size_t begin, size_t length) {
  const auto checked = AsBytes(std::string_view(*bytes).substr(begin, length - 4));
  Put(bytes, begin + length - 4, MaskCrc32c(Crc32c(checked)));
}

std::string WithRightChecksums(std::string bytes) {
  if (bytes.size() < kHeaderBytes) return bytes;
  Seal(&bytes, 0, kHeaderBytes);
  uint32_t headers = Crc32c(AsBytes(std::string_view(bytes).substr(0, kHeaderBytes)));
  size_t at = kHeaderBytes;
  while (bytes.size() - at >= kRecordBytes && bytes.compare(at, 4, "KREC") == 0) {
    uint64_t numbers = 0;
    std::memcpy(&numbers, bytes.data() + at + 32, sizeof(numbers));
    const size_t left = (bytes.size() - at - kRecordBytes) / 4;
    if (numbers > left) numbers = left;
    const auto body = std::string_view(bytes).substr(at + kRecordBytes, numbers * 4);
    Put(&bytes, at + 40, Crc32c(AsBytes(body)));
    Seal(&bytes, at, kRecordBytes);
    headers = ExtendCrc32c(headers, AsBytes(std::string_view(bytes).substr(at, kRecordBytes)));
    at += kRecordBytes + numbers * 4;
  }
  if (bytes.size() - at < kFooterBytes) return bytes;
  Put(&bytes, at + 24, headers);
  Seal(&bytes, at, kFooterBytes);
  return bytes;
}

void Read(const std::string& bytes) {
  MemoryFileSystem files;
  files.Put("shard", bytes);
  auto reader = ShardFileReader::Open(files, "shard");
  if (!reader.ok()) return;
  size_t all = 0;
  for (const ShardRecord& record : (*reader)->records()) {
    Require(!DescribeRecord(record).empty(), "a record without words");
    all += static_cast<size_t>(record.range.size());
  }
  Require(all * sizeof(float) <= bytes.size(), "more numbers than bytes");
  const bool intact = (*reader)->Verify().ok();
  std::vector<StateArray> arrays;
  const Status read = (*reader)->ReadOverlapping({3, 400}, &arrays);
  Require(read.ok() || !intact, "verified, but not to be read");
}

}  // namespace
}  // namespace kumo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(kumo::fuzz::AsText(data, size));
  kumo::fuzz::Read(bytes);
  kumo::fuzz::Read(kumo::fuzz::WithRightChecksums(bytes));
  return 0;
}
