// Shard file: one server's part of a checkpoint.
//
// All numbers are little-endian and of fixed width; every CRC is CRC-32C. "Masked" CRCs are rotated
// right by 15 bits and increased by 0xA282EAD8, as in TFRecord, because the CRC of bytes that end
// with their own CRC is constant.
//
//
//   file   = header record* footer
//   header = 72 bytes:
//      0  char[8]  "KUMOSHRD"
//      8  u32      format, 1
//     12  u32      length of the header, 72
//     16  u64      job: hash of the job's name and its experiment
//     24  u64      hash of the experiment
//     32  u64      fingerprint of the network
//     40  i64      version of the weights
//     48  u32      generation
//     52  u32      index of the shard
//     56  u32      number of shards
//     60  u64      0
//     68  u32      masked CRC of bytes 0..67
//   record = 48 bytes, then the numbers:
//      0  char[4]  "KREC"
//      4  u32      kind: StateKind (snapshot.h), 1 to 6
//      8  u32      partition (kind 4; else 0)
//     12  u32      slot (kinds 3, 4 and 6; else 0)
//     16  u32      codec of the numbers, 1 (float32)
//     20  u32      0
//     24  i64      position of the first number in the flat vector
//     32  i64      how many numbers, n > 0
//     40  u32      CRC of the numbers' bytes
//     44  u32      masked CRC of bytes 0..43
//     48  f32[n]   the numbers
//   footer = 32 bytes:
//      0  char[4]  "KEND"
//      4  u32      0
//      8  u64      how many records
//     16  u64      length of the file
//     24  u32      CRC of the header and all record headers, in order
//     28  u32      masked CRC of bytes 0..27
//
// Every byte is covered by a CRC. Records of one (kind, partition, slot) do not overlap. Records
// identify their contents and position, so any number of servers can load what another number
// wrote.
//
// A writer or a reader belongs to the thread that opened it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoint/snapshot.h"
#include "common/job/parameter_layout.h"

namespace kumo {

// Identity of the state in a file.
struct ShardFileHeader {
  uint64_t job = 0;
  uint64_t experiment_hash = 0;
  uint64_t fingerprint = 0;
  int64_t version = 0;
  uint32_t generation = 0;
  uint32_t shard = 0;
  uint32_t shards = 1;

  bool operator==(const ShardFileHeader&) const = default;
};

// A file's entry in the manifest.
struct SavedShardFile {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;      // of the whole file
  bool not_finite = false;  // a weight is not finite
};

// Writes a file record by record; it appears under its name, durable, when Finish returns. One
// thread; unbuffered.
class ShardFileWriter {
 public:
  // The folder must exist. files must outlive the writer.
  static Result<std::unique_ptr<ShardFileWriter>> Create(FileSystem& files, std::string path,
                                                         const ShardFileHeader& header);
  // Requires that the numbers overlap no others of the same kind, partition and slot. Skips empty
  // arrays.
  Status Add(const StateArray& array);
  Result<SavedShardFile> Finish();

 private:
  explicit ShardFileWriter(std::unique_ptr<AtomicFile> file) : file_(std::move(file)) {}
  Status Append(std::span<const std::byte> bytes);

  std::unique_ptr<AtomicFile> file_;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
  uint64_t records_ = 0;
  uint32_t headers_crc32c_ = 0;
  bool not_finite_ = false;
};

// Writes a whole snapshot. Blocks until it is durable: call it from a background thread.
Result<SavedShardFile> WriteShardFile(FileSystem& files, const std::string& path,
                                      const ShardFileHeader& header, const ShardSnapshot& snapshot);

// One record of an opened file.
struct ShardRecord {
  StateKind kind = StateKind::kStart;
  int partition = 0;
  int slot = 0;
  Range range;          // positions in the flat vector
  uint64_t offset = 0;  // of the numbers in the file
  uint32_t crc32c = 0;  // of the numbers
};

// "weights of [0, 512)", "slot 1 of partition 3 of [512, 700)".
std::string DescribeRecord(const ShardRecord& record);

// Reads a file. Any bytes are either accepted or refused with a Status (DataLoss, with file, record
// and offset); no allocation exceeds the file's length. One thread.
class ShardFileReader {
 public:
  // Reads and checks everything but the numbers. files is not kept.
  static Result<std::unique_ptr<ShardFileReader>> Open(FileSystem& files, const std::string& path);

  const ShardFileHeader& header() const { return header_; }
  const std::vector<ShardRecord>& records() const { return records_; }

  // Appends the file's arrays for positions in `wanted`, cut to it, in file order. Reads
  // overlapping records whole and checks their CRCs; skips others.
  Status ReadOverlapping(Range wanted, std::vector<StateArray>* arrays);
  // Checks the CRCs of all numbers.
  Status Verify();

 private:
  ShardFileReader(std::string path, std::unique_ptr<ReadableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status ReadHeader();
  Status ReadRecordHeaders();
  Status ReadRecordHeader(uint64_t offset, uint64_t end);
  Status ReadFooter(uint64_t offset);
  Status CheckNoOverlap() const;
  // Reads and checks all numbers of a record, and copies those in `wanted` to `out`.
  Status ReadNumbers(size_t index, Range wanted, float* out);
  Status Damaged(uint64_t offset, const std::string& what) const;

  const std::string path_;
  std::unique_ptr<ReadableFile> file_;
  ShardFileHeader header_;
  std::vector<ShardRecord> records_;
  uint32_t headers_crc32c_ = 0;
};

}  // namespace kumo
