// npz: a zip file with one array "NAME.npy" per tensor, as written by numpy.savez.
#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "common/base/printable.h"
#include "common/tensor_files/formats.h"
#include "common/tensor_files/npy_header.h"
#include "common/tensor_files/stored_zip.h"
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

}  // namespace kumo
