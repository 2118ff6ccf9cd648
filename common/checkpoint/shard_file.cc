// Format: shard_file.h. Checksums cover each byte, at four levels:
//
//   header, record header, footer   a masked CRC at the end of each block, checked when it is read
//   numbers of a record             a CRC in the record's header, checked by ReadNumbers
//   all headers, in order           a CRC in the footer: records cannot be lost or exchanged
//   the whole file                  a CRC in the manifest (SavedShardFile); VerifyFile compares it
//
// Writing. Records are appended one after the other through an AtomicFile: a crash leaves a
// temporary file, never a part under the file's name.
//
// Reading. Open reads the headers only, jumps over the numbers, and checks all positions and
// lengths against the file's length, so no number in a file makes memory grow. ReadNumbers reads a
// record whole, piece by piece, even if a part is wanted: the CRC is of all its numbers. Ranges of
// one (kind, partition, slot) must not overlap: a number with two values would depend on the order.
#include "common/checkpoint/shard_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "common/base/buffer.h"
#include "common/base/crc32c.h"
#include "common/base/text.h"

namespace kumo {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays of numbers are written in memory order");

constexpr char kFileMagic[] = "KUMOSHRD";
constexpr char kRecordMagic[] = "KREC";
constexpr char kFooterMagic[] = "KEND";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kFp32 = 1;  // CodecId::kFp32
constexpr size_t kHeaderBytes = 72;
constexpr size_t kRecordBytes = 48;
constexpr size_t kFooterBytes = 32;
// ParameterLayout's limit on the numbers of a file, so that no sum of positions overflows.
constexpr int64_t kMostNumbers = int64_t{1} << 36;
constexpr uint32_t kMostPartitions = 1u << 20;
constexpr uint32_t kMostSlots = 256;
// Two checksums run over the same bytes: in pieces, so that the second finds them in the cache.
constexpr size_t kPieceBytes = 256 << 10;

// Block of fixed-width fields; its last four bytes are the masked CRC of the bytes before. Without
// the mask, the CRC of a block that ends with its own CRC would be the same for every block, so a
// checksum over several blocks could not distinguish them.
template <size_t kBytes>
class Block {
 public:
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  void PutMagic(std::string_view magic) { std::memcpy(bytes_.data(), magic.data(), magic.size()); }
  bool HasMagic(std::string_view magic) const {
    return std::memcmp(bytes_.data(), magic.data(), magic.size()) == 0;
  }
  template <typename T>
  void Put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
  }
  template <typename T>
  T Get(size_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }
  void Seal() { Put<uint32_t>(kBytes - 4, OwnCrc()); }
  bool Sealed() const { return Get<uint32_t>(kBytes - 4) == OwnCrc(); }

 private:
  uint32_t OwnCrc() const {
    return MaskCrc32c(Crc32c(std::span(bytes_).template first<kBytes - 4>()));
  }

  std::array<std::byte, kBytes> bytes_{};
};

bool KnownKind(uint32_t kind) {
  return kind >= static_cast<uint32_t>(StateKind::kStart) &&
         kind <= static_cast<uint32_t>(StateKind::kEarlierStart);
}

Range Intersection(Range a, Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

}  // namespace

std::string DescribeRecord(const ShardRecord& record) {
  const std::string slot = "slot " + std::to_string(record.slot);
  const std::string range =
      " of [" + std::to_string(record.range.begin) + ", " + std::to_string(record.range.end) + ")";
  switch (record.kind) {
    case StateKind::kStart:
      return "start weights" + range;
    case StateKind::kWeights:
      return "weights" + range;
    case StateKind::kRuleSlot:
      return slot + " of the rule" + range;
    case StateKind::kPartitionState:
      return slot + " of partition " + std::to_string(record.partition) + range;
    case StateKind::kWorkerCopy:
      return "workers' copy" + range;
    case StateKind::kEarlierStart:
      return "start weights of " + std::to_string(record.slot) + " versions before" + range;
  }
  return "unknown kind" + range;
}

Result<std::unique_ptr<ShardFileWriter>> ShardFileWriter::Create(FileSystem& files,
                                                                 std::string path,
                                                                 const ShardFileHeader& header) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                        AtomicFile::Create(files, std::move(path)));
  std::unique_ptr<ShardFileWriter> writer(new ShardFileWriter(std::move(file)));
  Block<kHeaderBytes> block;
  block.PutMagic(kFileMagic);
  block.Put<uint32_t>(8, kFormat);
  block.Put<uint32_t>(12, kHeaderBytes);
  block.Put<uint64_t>(16, header.job);
  block.Put<uint64_t>(24, header.experiment_hash);
  block.Put<uint64_t>(32, header.fingerprint);
  block.Put<int64_t>(40, header.version);
  block.Put<uint32_t>(48, header.generation);
  block.Put<uint32_t>(52, header.shard);
  block.Put<uint32_t>(56, header.shards);
  block.Seal();
  writer->headers_crc32c_ = Crc32c(block.bytes());
  KUMO_RETURN_IF_ERROR(writer->Append(block.bytes()));
  return writer;
}

namespace {

// In pieces without a branch for each number, which the compiler turns into vector instructions.
bool AllFinite(std::span<const float> numbers) {
  constexpr uint32_t kInfinity = 0x7f800000;
  for (size_t at = 0; at < numbers.size();) {
    const size_t end = std::min(numbers.size(), at + 4096);
    uint32_t largest = 0;
    for (; at < end; ++at) {
      largest = std::max(largest, std::bit_cast<uint32_t>(numbers[at]) & 0x7fffffff);
    }
    if (largest >= kInfinity) return false;
  }
  return true;
}

}  // namespace

Status ShardFileWriter::Append(std::span<const std::byte> bytes) {
  crc32c_ = ExtendCrc32c(crc32c_, bytes);
  bytes_ += bytes.size();
  return file_->Append(bytes);
}

Status ShardFileWriter::Add(const StateArray& array) {
  if (array.numbers.empty()) return OkStatus();
  const auto count = static_cast<int64_t>(array.numbers.size());
  CHECK(KnownKind(static_cast<uint32_t>(array.kind)));
  CHECK(array.begin >= 0 && count <= kMostNumbers && array.begin <= kMostNumbers - count);
  CHECK(array.partition >= 0 && static_cast<uint32_t>(array.partition) < kMostPartitions);
  CHECK(array.slot >= 0 && static_cast<uint32_t>(array.slot) < kMostSlots);
  const std::span<const std::byte> numbers = std::as_bytes(array.numbers);
  if (array.kind == StateKind::kStart || array.kind == StateKind::kWeights) {
    not_finite_ = not_finite_ || !AllFinite(array.numbers);
  }
  Block<kRecordBytes> block;
  block.PutMagic(kRecordMagic);
  block.Put<uint32_t>(4, static_cast<uint32_t>(array.kind));
  block.Put<uint32_t>(8, static_cast<uint32_t>(array.partition));
  block.Put<uint32_t>(12, static_cast<uint32_t>(array.slot));
  block.Put<uint32_t>(16, kFp32);
  block.Put<int64_t>(24, array.begin);
  block.Put<int64_t>(32, count);
  block.Put<uint32_t>(40, Crc32c(numbers));
  block.Seal();
  headers_crc32c_ = ExtendCrc32c(headers_crc32c_, block.bytes());
  ++records_;
  KUMO_RETURN_IF_ERROR(Append(block.bytes()));
  for (size_t at = 0; at < numbers.size(); at += kPieceBytes) {
    KUMO_RETURN_IF_ERROR(Append(numbers.subspan(at, std::min(kPieceBytes, numbers.size() - at))));
  }
  return OkStatus();
}

Result<SavedShardFile> ShardFileWriter::Finish() {
  Block<kFooterBytes> block;
  block.PutMagic(kFooterMagic);
  block.Put<uint64_t>(8, records_);
  block.Put<uint64_t>(16, bytes_ + kFooterBytes);
  block.Put<uint32_t>(24, headers_crc32c_);
  block.Seal();
  KUMO_RETURN_IF_ERROR(Append(block.bytes()));
  KUMO_RETURN_IF_ERROR(file_->Commit());
  return SavedShardFile{bytes_, crc32c_, not_finite_};
}

Result<SavedShardFile> WriteShardFile(FileSystem& files, const std::string& path,
                                      const ShardFileHeader& header,
                                      const ShardSnapshot& snapshot) {
  CHECK_EQ(header.version, snapshot.version);
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ShardFileWriter> writer,
                        ShardFileWriter::Create(files, path, header));
  for (const StateArray& array : snapshot.arrays) KUMO_RETURN_IF_ERROR(writer->Add(array));
  return writer->Finish();
}

Status ShardFileReader::Damaged(uint64_t offset, const std::string& what) const {
  return DataLoss("checkpoint file " + path_ + ", byte " + std::to_string(offset) + ": " + what);
}

Result<std::unique_ptr<ShardFileReader>> ShardFileReader::Open(FileSystem& files,
                                                               const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  std::unique_ptr<ShardFileReader> reader(new ShardFileReader(path, std::move(file)));
  KUMO_RETURN_IF_ERROR(reader->ReadHeader());
  KUMO_RETURN_IF_ERROR(reader->ReadRecordHeaders());
  KUMO_RETURN_IF_ERROR(reader->CheckNoOverlap());
  return reader;
}

Status ShardFileReader::ReadHeader() {
  if (file_->size() < kHeaderBytes + kFooterBytes) {
    return Damaged(file_->size(), "the file is too short");
  }
  Block<kHeaderBytes> block;
  KUMO_RETURN_IF_ERROR(file_->Read(0, block.bytes()));
  if (!block.HasMagic(kFileMagic)) return Damaged(0, "the file is no checkpoint file");
  if (block.Get<uint32_t>(8) != kFormat) {
    return Damaged(8, "the format is " + std::to_string(block.Get<uint32_t>(8)) +
                          ", but this program reads format " + std::to_string(kFormat) +
                          "; read it with the release that wrote it");
  }
  if (block.Get<uint32_t>(12) != kHeaderBytes || !block.Sealed()) {
    return Damaged(0, "the header is damaged");
  }
  header_.job = block.Get<uint64_t>(16);
  header_.experiment_hash = block.Get<uint64_t>(24);
  header_.fingerprint = block.Get<uint64_t>(32);
  header_.version = block.Get<int64_t>(40);
  header_.generation = block.Get<uint32_t>(48);
  header_.shard = block.Get<uint32_t>(52);
  header_.shards = block.Get<uint32_t>(56);
  headers_crc32c_ = Crc32c(block.bytes());
  return OkStatus();
}

Status ShardFileReader::ReadRecordHeaders() {
  const uint64_t end = file_->size() - kFooterBytes;
  uint64_t offset = kHeaderBytes;
  while (offset < end) {
    KUMO_RETURN_IF_ERROR(ReadRecordHeader(offset, end));
    offset = records_.back().offset + records_.back().range.size() * sizeof(float);
  }
  return ReadFooter(offset);
}

Status ShardFileReader::ReadRecordHeader(uint64_t offset, uint64_t end) {
  const std::string name = "record " + std::to_string(records_.size());
  if (end - offset < kRecordBytes) return Damaged(offset, name + " is truncated");
  Block<kRecordBytes> block;
  KUMO_RETURN_IF_ERROR(file_->Read(offset, block.bytes()));
  if (!block.HasMagic(kRecordMagic) || !block.Sealed()) {
    return Damaged(offset, "the header of " + name + " is damaged");
  }
  const auto kind = block.Get<uint32_t>(4);
  const auto partition = block.Get<uint32_t>(8);
  const auto slot = block.Get<uint32_t>(12);
  const auto begin = block.Get<int64_t>(24);
  const auto count = block.Get<int64_t>(32);
  if (!KnownKind(kind) || block.Get<uint32_t>(16) != kFp32 || partition >= kMostPartitions ||
      slot >= kMostSlots) {
    return Damaged(offset, name + " is of an unknown kind");
  }
  if (count <= 0 || count > kMostNumbers || begin < 0 || begin > kMostNumbers - count) {
    return Damaged(offset, name + " has invalid positions");
  }
  if (static_cast<uint64_t>(count) * sizeof(float) > end - offset - kRecordBytes) {
    return Damaged(offset, name + " is longer than the file");
  }
  headers_crc32c_ = ExtendCrc32c(headers_crc32c_, block.bytes());
  records_.push_back({.kind = static_cast<StateKind>(kind),
                      .partition = static_cast<int>(partition),
                      .slot = static_cast<int>(slot),
                      .range = {begin, begin + count},
                      .offset = offset + kRecordBytes,
                      .crc32c = block.Get<uint32_t>(40)});
  return OkStatus();
}

Status ShardFileReader::ReadFooter(uint64_t offset) {
  Block<kFooterBytes> block;
  KUMO_RETURN_IF_ERROR(file_->Read(offset, block.bytes()));
  if (!block.HasMagic(kFooterMagic) || !block.Sealed() ||
      block.Get<uint64_t>(8) != records_.size() || block.Get<uint64_t>(16) != file_->size() ||
      block.Get<uint32_t>(24) != headers_crc32c_) {
    return Damaged(offset, "the footer is damaged");
  }
  return OkStatus();
}

Status ShardFileReader::CheckNoOverlap() const {
  std::vector<const ShardRecord*> sorted;
  sorted.reserve(records_.size());
  for (const ShardRecord& record : records_) sorted.push_back(&record);
  const auto key = [](const ShardRecord* record) {
    return std::make_tuple(record->kind, record->partition, record->slot);
  };
  std::sort(sorted.begin(), sorted.end(), [&](const ShardRecord* a, const ShardRecord* b) {
    return std::make_pair(key(a), a->range.begin) < std::make_pair(key(b), b->range.begin);
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (key(sorted[i - 1]) == key(sorted[i]) && sorted[i]->range.begin < sorted[i - 1]->range.end) {
      return Damaged(sorted[i]->offset, DescribeRecord(*sorted[i]) + " occurs twice");
    }
  }
  return OkStatus();
}

Status ShardFileReader::ReadNumbers(size_t index, Range wanted, float* out) {
  const ShardRecord& record = records_[index];
  const Range copied = Intersection(record.range, wanted);
  constexpr int64_t kPiece = kPieceBytes / sizeof(float);
  std::vector<float> piece(std::min(kPiece, record.range.size()));
  uint32_t crc32c = 0;
  for (int64_t begin = record.range.begin; begin < record.range.end; begin += kPiece) {
    const Range range = {begin, std::min(begin + kPiece, record.range.end)};
    const std::span<float> numbers(piece.data(), range.size());
    const uint64_t offset = record.offset + (begin - record.range.begin) * sizeof(float);
    KUMO_RETURN_IF_ERROR(file_->Read(offset, std::as_writable_bytes(numbers)));
    crc32c = ExtendCrc32c(crc32c, std::as_bytes(numbers));
    const Range now = Intersection(range, copied);
    if (now.size() <= 0) continue;
    std::memcpy(out + (now.begin - copied.begin), numbers.data() + (now.begin - range.begin),
                now.size() * sizeof(float));
  }
  if (crc32c != record.crc32c) {
    return Damaged(record.offset, "record " + std::to_string(index) + " (" +
                                      DescribeRecord(record) + ") is damaged: its checksum is " +
                                      HexDigits(crc32c) + ", expected " + HexDigits(record.crc32c));
  }
  return OkStatus();
}

Status ShardFileReader::ReadOverlapping(Range wanted, std::vector<StateArray>* arrays) {
  for (size_t i = 0; i < records_.size(); ++i) {
    const ShardRecord& record = records_[i];
    const Range range = Intersection(record.range, wanted);
    if (range.size() <= 0) continue;
    auto numbers = std::make_shared<Buffer<float>>(range.size());
    KUMO_RETURN_IF_ERROR(ReadNumbers(i, wanted, numbers->data()));
    arrays->push_back({.kind = record.kind,
                       .partition = record.partition,
                       .slot = record.slot,
                       .begin = range.begin,
                       .owner = numbers,
                       .numbers = std::as_const(*numbers).span()});
  }
  return OkStatus();
}

Status ShardFileReader::Verify() {
  for (size_t i = 0; i < records_.size(); ++i) {
    KUMO_RETURN_IF_ERROR(ReadNumbers(i, Range{}, nullptr));
  }
  return OkStatus();
}

}  // namespace kumo
