// safetensors: the length of a header (8 bytes), the header in JSON, and the elements of the
// tensors, one tensor after the other:
//
//   {"conv1.weight":{"dtype":"F32","shape":[20,1,5,5],"data_offsets":[0,2000]}, ...}
//
// Offsets count from the end of the header. "__metadata__" may contain additional texts.
#include <algorithm>
#include <string>
#include <utility>

#include <google/protobuf/util/json_util.h>

#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/tensor_files/formats.h"
#include "proto/safetensors.pb.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestHeader = 32 << 20;
constexpr size_t kAlignment = 8;  // of the elements, for programs that map the file
constexpr char kMetadata[] = "__metadata__";

struct Entry {
  FileTensor tensor;
  FileNumbers numbers = FileNumbers::kFloat32;  // if readable
  uint64_t begin = 0, end = 0;                  // bytes after the header
};

// Bytes per element, and the readable types.
struct NumberKind {
  const char* name;
  int64_t bytes;
  std::optional<FileNumbers> numbers;
};
constexpr NumberKind kNumberKinds[] = {
    {"F32", 4, FileNumbers::kFloat32},
    {"F16", 2, FileNumbers::kFloat16},
    {"BF16", 2, FileNumbers::kBfloat16},
    {"F64", 8, FileNumbers::kFloat64},
    {"BOOL", 1, {}},
    {"U8", 1, {}},
    {"I8", 1, {}},
    {"U16", 2, {}},
    {"I16", 2, {}},
    {"U32", 4, {}},
    {"I32", 4, {}},
    {"U64", 8, {}},
    {"I64", 8, {}},
};

// True if the text is exactly one JSON object. The text is embedded in another object for parsing,
// so it must not close that one.
bool IsOneObject(std::string_view text) {
  if (!text.starts_with('{')) return false;
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth == 0) return text.find_first_not_of(" \t\r\n", i + 1) == text.npos;
  }
  return false;
}

// Computes a tensor's location and checks it against its type and shape.
Result<Entry> EntryOf(const std::string& name, const safetensors::Tensor& said) {
  KUMO_RETURN_IF_ERROR(CheckTensorName(name));
  const auto wrong = [&](const std::string& what) {
    return DataLoss("tensor " + Printable(name) + ": " + what);
  };
  Entry entry;
  entry.tensor.name = name;
  for (const uint64_t extent : said.shape()) {
    entry.tensor.shape.push_back(static_cast<int64_t>(std::min<uint64_t>(extent, INT64_MAX)));
  }
  const Result<int64_t> size = NumbersOfShape(entry.tensor.shape);
  if (!size.ok()) return wrong(size.status().message());
  entry.tensor.size = *size;
  if (said.data_offsets_size() != 2) return wrong("data_offsets must be two numbers");
  entry.begin = said.data_offsets(0);
  entry.end = said.data_offsets(1);
  if (entry.begin > entry.end) return wrong("its end is before its begin");
  const auto* const kind = std::ranges::find(kNumberKinds, said.dtype(), &NumberKind::name);
  if (kind == std::end(kNumberKinds)) {
    entry.tensor.unreadable = "its elements are of type " + Printable(said.dtype(), 20);
    return entry;
  }
  if (entry.end - entry.begin != static_cast<uint64_t>(*size) * kind->bytes) {
    return wrong(entry.tensor.ShapeText() + " of " + kind->name + " has " +
                 std::to_string(*size * kind->bytes) + " bytes, but data_offsets have " +
                 std::to_string(entry.end - entry.begin));
  }
  if (kind->numbers) {
    entry.numbers = *kind->numbers;
  } else {
    entry.tensor.unreadable = std::string("its elements are of type ") + kind->name;
  }
  return entry;
}

// The tensors in file order. DataLoss unless they fill `bytes` without gaps or overlaps.
Result<std::vector<Entry>> ParseHeader(const std::string& text, uint64_t bytes) {
  if (!IsOneObject(text)) return DataLoss("the header is no JSON object");
  safetensors::Header header;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // metadata has other fields
  const auto parsed =
      google::protobuf::util::JsonStringToMessage("{\"tensors\":" + text + "}", &header, options);
  if (!parsed.ok()) {
    return DataLoss("the header cannot be parsed: " + Printable(std::string(parsed.message())));
  }
  if (header.tensors_size() > kMostFileTensors) return DataLoss("the file has too many tensors");
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : header.tensors()) {
    if (name == kMetadata) continue;
    KUMO_ASSIGN_OR_RETURN(Entry entry, EntryOf(name, tensor));
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::pair<uint64_t, uint64_t>(entry.begin, entry.end);
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      return DataLoss("tensor " + Printable(entry.tensor.name) + " begins at byte " +
                      std::to_string(entry.begin) + ", but the previous one ends at " +
                      std::to_string(at));
    }
    at = entry.end;
  }
  if (at != bytes) {
    return DataLoss("the tensors end at byte " + std::to_string(at) +
                    " after the header, but the file has " + std::to_string(bytes) +
                    "; it is truncated or has extra bytes");
  }
  return entries;
}

}  // namespace

Status WriteSafetensors(FileSystem& files, const std::string& path,
                        std::span<const NamedTensor> tensors) {
  JsonFields header;
  header.Add(kMetadata, JsonFields().Add("format", "pt"));
  uint64_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    JsonArray shape;
    for (const int64_t extent : tensor.shape) shape.Add(extent);
    const uint64_t end = at + tensor.numbers.size_bytes();
    header.Add(tensor.name, JsonFields()
                                .Add("dtype", "F32")
                                .Add("shape", shape)
                                .Add("data_offsets", JsonArray().Add(at).Add(end)));
    at = end;
  }
  std::string text = header.object();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  KUMO_ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(files, path));
  KUMO_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(&length, 1))));
  KUMO_RETURN_IF_ERROR(file->Append(AsBytes(text)));
  for (const NamedTensor& tensor : tensors) {
    KUMO_RETURN_IF_ERROR(file->Append(std::as_bytes(tensor.numbers)));
  }
  return file->Commit();
}

Status ReadSafetensors(FileSystem& files, const std::string& path, const RoomForTensor& room) {
  KUMO_ASSIGN_OR_RETURN(const auto file, files.OpenForReading(path));
  uint64_t length = 0;
  if (file->size() < sizeof(length)) return DataLoss("the file is too short for safetensors");
  KUMO_RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(&length, 1))));
  const uint64_t rest = file->size() - sizeof(length);
  if (length > std::min(rest, kLongestHeader)) {
    return DataLoss("the header should have " + std::to_string(length) +
                    " bytes, but the file has " + std::to_string(rest) + " (and the limit is " +
                    std::to_string(kLongestHeader) + "): it is truncated or no safetensors file");
  }
  std::string text(length, ' ');
  KUMO_RETURN_IF_ERROR(file->Read(sizeof(length), std::as_writable_bytes(std::span(text))));
  KUMO_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ParseHeader(text, rest - length));
  for (const Entry& entry : entries) {
    uint64_t at = sizeof(length) + length + entry.begin;
    const auto read = [&](std::span<std::byte> out) -> Status {
      KUMO_RETURN_IF_ERROR(file->Read(at, out));
      at += out.size();
      return OkStatus();
    };
    bool wanted = false;
    if (!entry.tensor.unreadable.empty()) {
      KUMO_RETURN_IF_ERROR(room(entry.tensor).status());
      continue;
    }
    KUMO_RETURN_IF_ERROR(FillRoom(entry.tensor, entry.numbers, room, read, &wanted)
                             .WithContext("tensor " + Printable(entry.tensor.name)));
  }
  return OkStatus();
}

}  // namespace kumo
