#include "data/digits/idx_writer.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

// Level 6 would make 3 % less of drawn digits, and take half as long again.
constexpr int kLevel = 3;

}  // namespace

struct IdxWriter::State {
  std::string path;
  std::unique_ptr<AtomicFile> file;
  std::string comment;  // zlib reads it while the header is written
  bool deflating = false;
  int64_t missing = 0;  // bytes still to be appended
  z_stream stream{};
  gz_header header{};
  std::array<uint8_t, 256 * 1024> output;

  ~State() {
    if (deflating) deflateEnd(&stream);
  }
  Status Deflate(std::span<const uint8_t> bytes, int flush);
};

Status IdxWriter::State::Deflate(std::span<const uint8_t> bytes, int flush) {
  stream.next_in = const_cast<uint8_t*>(bytes.data());  // zlib does not write to it
  stream.avail_in = static_cast<uInt>(bytes.size());
  int code = Z_OK;
  do {
    stream.next_out = output.data();
    stream.avail_out = static_cast<uInt>(output.size());
    code = deflate(&stream, flush);
    CHECK_NE(code, Z_STREAM_ERROR) << path;
    KUMO_RETURN_IF_ERROR(
        file->Append(std::as_bytes(std::span(output).first(output.size() - stream.avail_out))));
  } while (stream.avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
  return OkStatus();
}

IdxWriter::IdxWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
IdxWriter::IdxWriter(IdxWriter&&) noexcept = default;
IdxWriter& IdxWriter::operator=(IdxWriter&&) noexcept = default;
IdxWriter::~IdxWriter() = default;

Result<IdxWriter> IdxWriter::Create(FileSystem& files, const std::string& path,
                                    const std::vector<int64_t>& extents,
                                    const std::string& comment) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->comment = comment;
  KUMO_ASSIGN_OR_RETURN(state->file, AtomicFile::Create(files, path));
  if (deflateInit2(&state->stream, kLevel, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Internal(path + ": zlib does not start");
  }
  state->deflating = true;
  state->header.comment = reinterpret_cast<Bytef*>(state->comment.data());
  state->header.os = 255;  // unknown: the same bytes everywhere
  CHECK_EQ(deflateSetHeader(&state->stream, &state->header), Z_OK);
  std::vector<uint8_t> head = {0, 0, 8, static_cast<uint8_t>(extents.size())};
  state->missing = 1;
  for (const int64_t extent : extents) {
    CHECK(extent > 0 && extent <= UINT32_MAX) << extent;
    state->missing *= extent;
    for (int shift = 24; shift >= 0; shift -= 8) {
      head.push_back(static_cast<uint8_t>(extent >> shift));
    }
  }
  KUMO_RETURN_IF_ERROR(state->Deflate(head, Z_NO_FLUSH));
  return IdxWriter(std::move(state));
}

Status IdxWriter::Append(std::span<const uint8_t> bytes) {
  state_->missing -= static_cast<int64_t>(bytes.size());
  CHECK_GE(state_->missing, 0) << state_->path << ": more bytes than its extents hold";
  return state_->Deflate(bytes, Z_NO_FLUSH);
}

Status IdxWriter::Commit() {
  State& state = *state_;
  CHECK_EQ(state.missing, 0) << state.path << ": fewer bytes than its extents hold";
  KUMO_RETURN_IF_ERROR(state.Deflate({}, Z_FINISH));
  return state.file->Commit();
}

std::string ReadGzipComment(FileSystem& files, const std::string& path) {
  const auto file = files.OpenForReading(path);
  if (!file.ok()) return "";
  std::array<uint8_t, 1024> head;
  const size_t size = std::min<uint64_t>(head.size(), file.value()->size());
  if (!file.value()->Read(0, std::as_writable_bytes(std::span(head).first(size))).ok()) return "";
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return "";
  std::array<uint8_t, 256> comment{};
  gz_header header{};
  header.comment = comment.data();
  header.comm_max = comment.size() - 1;
  inflateGetHeader(&stream, &header);
  stream.next_in = head.data();
  stream.avail_in = static_cast<uInt>(size);
  uint8_t unused = 0;
  stream.next_out = &unused;
  // Stops behind the header, before any content is unpacked.
  inflate(&stream, Z_BLOCK);
  const bool found = header.done == 1 && header.comment != nullptr;
  inflateEnd(&stream);
  return found ? reinterpret_cast<const char*>(comment.data()) : "";
}

}  // namespace kumo
