// npz: a zip file with one array "NAME.npy" per tensor, as written by numpy.savez.
#include "common/tensor_files/npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/tensor_files/formats.h"
#include "common/tensor_files/tensor_file.h"

namespace kumo {

namespace {

constexpr std::string_view kEnding = ".npy";
constexpr size_t kBlockBytes = 256 << 10;  // per read

struct CloseReader {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
std::string Reason(archive* handle) {
  const char* reason = archive_error_string(handle);
  return reason == nullptr ? "no reason given" : Printable(reason);
}

// Maps the readable numpy types; other types are unreadable.
Result<FileNumbers> NumbersOf(const NpyHeader& header) {
  const std::string& descr = header.descr;
  if (header.fortran_order && header.shape.size() > 1) {
    return InvalidArgument(
        "its elements are in Fortran order; convert them with numpy.ascontiguousarray");
  }
  if (descr == "<f4") return FileNumbers::kFloat32;
  if (descr == "<f2") return FileNumbers::kFloat16;
  if (descr == "<f8") return FileNumbers::kFloat64;
  return InvalidArgument("its elements are of type " + Printable(descr, 20));
}

class NpzReader {
 public:
  NpzReader(const std::string& path, const RoomForTensor& room)
      : path_(path), room_(room), handle_(archive_read_new()) {}

  Status Read() {
    archive* const handle = handle_.get();
    if (handle == nullptr) return ResourceExhausted("no memory to read the file");
    archive_read_support_format_zip_seekable(handle);
    if (archive_read_open_filename(handle, path_.c_str(), kBlockBytes) != ARCHIVE_OK) {
      return Damaged();
    }
    for (;;) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(handle, &entry);
      if (code == ARCHIVE_EOF) return OkStatus();
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Damaged();
      const char* name = archive_entry_pathname(entry);
      if (name == nullptr) name = archive_entry_pathname_utf8(entry);
      if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
      if (!std::string_view(name).ends_with(kEnding)) continue;
      const std::string stem(
          std::string_view(name).substr(0, std::string_view(name).size() - kEnding.size()));
      KUMO_RETURN_IF_ERROR(CheckTensorName(stem));
      const std::string context = "array " + Printable(stem);
      if (!names_.insert(stem).second) return DataLoss(context + " occurs twice");
      if (std::ssize(names_) > kMostFileTensors) return DataLoss("the file has too many arrays");
      KUMO_RETURN_IF_ERROR(ReadArray(stem).WithContext(context));
    }
  }

 private:
  Status Damaged() const {
    return DataLoss("the npz file is damaged (" + Reason(handle_.get()) + ")");
  }

  // Reads all of `out`, or returns DataLoss.
  Status ReadBytes(std::span<std::byte> out) {
    while (!out.empty()) {
      const la_ssize_t size = archive_read_data(handle_.get(), out.data(), out.size());
      if (size == 0) return DataLoss("ends before its last element");
      if (size < 0) return Damaged();
      out = out.subspan(static_cast<size_t>(size));
    }
    return OkStatus();
  }

  Result<NpyHeader> ReadHeader() {
    std::array<std::byte, kNpyPrefix> bytes{};
    KUMO_RETURN_IF_ERROR(ReadBytes(bytes));
    KUMO_ASSIGN_OR_RETURN(NpyPrefix prefix, ParseNpyPrefix(bytes));
    if (prefix.more > 0) {
      std::array<std::byte, 2> more{};
      KUMO_RETURN_IF_ERROR(ReadBytes(more));
      prefix.length += (static_cast<size_t>(more[0]) << 16) + (static_cast<size_t>(more[1]) << 24);
    }
    if (prefix.length > kLongestNpyHeader) return DataLoss("has a header of more than 64 KiB");
    std::string text(prefix.length, ' ');
    KUMO_RETURN_IF_ERROR(ReadBytes(std::as_writable_bytes(std::span(text))));
    return ParseNpyHeader(text);
  }

  Status ReadArray(const std::string& name) {
    KUMO_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader());
    FileTensor tensor = {name, header.shape, 0, ""};
    KUMO_ASSIGN_OR_RETURN(tensor.size, NumbersOfShape(header.shape));
    const Result<FileNumbers> numbers = NumbersOf(header);
    if (!numbers.ok()) {
      tensor.unreadable = numbers.status().message();
      return room_(tensor).status();
    }
    bool wanted = false;
    KUMO_RETURN_IF_ERROR(FillRoom(
        tensor, *numbers, room_, [this](std::span<std::byte> out) { return ReadBytes(out); },
        &wanted));
    if (!wanted) return OkStatus();
    // Reading to the end makes libarchive compare the checksum.
    std::byte beyond{};
    const la_ssize_t more = archive_read_data(handle_.get(), &beyond, 1);
    if (more < 0) return Damaged();
    return more == 0 ? OkStatus() : DataLoss("has more bytes than its shape needs");
  }

  const std::string& path_;
  const RoomForTensor& room_;
  const std::unique_ptr<archive, CloseReader> handle_;
  std::set<std::string> names_;
};

}  // namespace

Status WriteNpz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors) {
  KUMO_ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(files, path));
  StoredZip zip(file.get());
  for (const NamedTensor& tensor : tensors) {
    const std::string header = NpyHeaderBytes(tensor.shape);
    const std::span<const std::byte> parts[] = {AsBytes(header), std::as_bytes(tensor.numbers)};
    KUMO_RETURN_IF_ERROR(
        zip.Add(tensor.name + std::string(kEnding), parts).WithContext(path + ": " + tensor.name));
  }
  KUMO_RETURN_IF_ERROR(zip.Finish());
  return file->Commit();
}

Status ReadNpz(FileSystem& files, const std::string& path, const RoomForTensor& room) {
  // Reports faults of the path itself in our words.
  KUMO_RETURN_IF_ERROR(files.OpenForReading(path).status());
  return NpzReader(path, room).Read();
}

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

// Scanner of the dictionary.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Consumes `word` and the blanks before it, if they come next.
  bool Take(std::string_view word) {
    const size_t blanks = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(blanks == rest_.npos ? rest_.size() : blanks);
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool TakeQuoted(std::string* text) {
    const char quote = Take("'") ? '\'' : Take("\"") ? '"' : '\0';
    const size_t end = quote == '\0' ? rest_.npos : rest_.find(quote);
    if (end == rest_.npos) return false;
    *text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool TakeShape(std::vector<int64_t>* shape) {
    if (!Take("(")) return false;
    while (!Take(")")) {
      Take("");
      const std::optional<int64_t> extent = TakeNumber<int64_t>(&rest_);
      if (!extent || shape->size() == kMostExtents) return false;
      shape->push_back(*extent);
      Take("L");  // suffix of long integers in Python 2
      if (!Take(",") && !rest_.starts_with(')')) return false;
    }
    return true;
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::string NpyHeaderBytes(std::span<const int64_t> shape) {
  std::string extents;
  for (const int64_t extent : shape) {
    extents += (extents.empty() ? "" : " ") + std::to_string(extent) + ",";
  }
  if (shape.size() > 1) extents.pop_back();
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + extents + "), }";
  const size_t all = (kNpyPrefix + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(all - kNpyPrefix - 1, ' ');
  text += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\x00';
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}

Result<NpyPrefix> ParseNpyPrefix(std::span<const std::byte, kNpyPrefix> bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return DataLoss("is no .npy file");
  }
  const int version = at(kMagic.size());
  if (version < 1 || version > 3) {
    return DataLoss("is a .npy file of the unknown version " + std::to_string(version));
  }
  NpyPrefix prefix;
  prefix.length = at(8) + (size_t{at(9)} << 8);
  // From version 2 on the length has four bytes; the upper two come next.
  if (version > 1) prefix.more = 2;
  return prefix;
}

Result<NpyHeader> ParseNpyHeader(std::string_view dictionary) {
  const Status none = DataLoss("has no valid numpy header: " + Printable(dictionary));
  NpyHeader header;
  int seen = 0;  // one bit per key
  Scanner scanner(dictionary);
  if (!scanner.Take("{")) return none;
  while (!scanner.Take("}")) {
    std::string key;
    if (!scanner.TakeQuoted(&key) || !scanner.Take(":")) return none;
    int bit = 0;
    if (key == "descr") {
      bit = 1;
      // Structured types are described by a list.
      if (!scanner.TakeQuoted(&header.descr)) return none;
    } else if (key == "fortran_order") {
      bit = 2;
      header.fortran_order = scanner.Take("True");
      if (!header.fortran_order && !scanner.Take("False")) return none;
    } else if (key == "shape") {
      bit = 4;
      if (!scanner.TakeShape(&header.shape)) return none;
    }
    if (bit == 0 || (seen & bit) != 0) return none;
    seen |= bit;
    if (!scanner.Take(",") && !scanner.Take("")) return none;
  }
  return seen == 7 ? Result<NpyHeader>(std::move(header)) : none;
}

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
