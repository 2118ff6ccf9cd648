#include "data/readers/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/file.h"

namespace kumo {
namespace {

constexpr size_t kInputBytes = 256 * 1024;
constexpr int64_t kMaxInflation = 1032;

}  // namespace

struct ByteSource::State {
  std::string path;
  std::unique_ptr<ReadableFile> file;
  int64_t file_size = 0;
  int64_t file_offset = 0;  // bytes read from the file into `input`
  bool compressed = false;
  bool inflating = false;   // `stream` is set up
  bool member_open = true;  // inside a gzip member: end of file means truncation
  int64_t offset = 0;
  z_stream stream{};  // next_in, avail_in: unread bytes of `input`, for plain files too
  std::array<uint8_t, kInputBytes> input;

  ~State() {
    if (inflating) inflateEnd(&stream);
  }

  Status Start();
  Status Refill();
  Result<size_t> ReadPlain(std::span<uint8_t> out);
  Result<size_t> Inflate(std::span<uint8_t> out);
  Status Damaged(const std::string& what) const;
};

Status ByteSource::State::Damaged(const std::string& what) const {
  return DataLoss(path + ": " + what + " at byte " + std::to_string(offset) +
                  " of the unpacked content; download or create the file again");
}

// Reads the next piece of the file into `input`; avail_in stays 0 at the end.
Status ByteSource::State::Refill() {
  const int64_t count = std::min<int64_t>(kInputBytes, file_size - file_offset);
  KUMO_RETURN_IF_ERROR(file->Read(static_cast<uint64_t>(file_offset),
                                  std::as_writable_bytes(std::span(input).first(count))));
  file_offset += count;
  stream.next_in = input.data();
  stream.avail_in = static_cast<uInt>(count);
  return OkStatus();
}

Status ByteSource::State::Start() {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(file, files.OpenForReading(path));
  file_size = static_cast<int64_t>(file->size());
  KUMO_RETURN_IF_ERROR(Refill());
  compressed = stream.avail_in >= 2 && input[0] == 0x1f && input[1] == 0x8b;
  if (!compressed) return OkStatus();
  // 15: the largest window; + 16: a gzip wrapper, whose checksum zlib verifies.
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return Internal(path + ": zlib does not start");
  inflating = true;
  return OkStatus();
}

Result<size_t> ByteSource::State::ReadPlain(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    if (stream.avail_in == 0) KUMO_RETURN_IF_ERROR(Refill());
    if (stream.avail_in == 0) break;
    const size_t count = std::min<size_t>(stream.avail_in, out.size() - done);
    std::memcpy(out.data() + done, stream.next_in, count);
    stream.next_in += count;
    stream.avail_in -= static_cast<uInt>(count);
    done += count;
  }
  offset += static_cast<int64_t>(done);
  return done;
}

Result<size_t> ByteSource::State::Inflate(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    if (stream.avail_in == 0) KUMO_RETURN_IF_ERROR(Refill());
    if (stream.avail_in == 0 && !member_open) break;
    if (!member_open) {  // gzip members may be concatenated
      inflateReset(&stream);
      member_open = true;
    }
    const bool file_ended = stream.avail_in == 0;
    const uInt room = static_cast<uInt>(std::min<size_t>(out.size() - done, 1u << 30));
    stream.next_out = out.data() + done;
    stream.avail_out = room;
    const int code = inflate(&stream, Z_NO_FLUSH);
    const size_t count = room - stream.avail_out;
    done += count;
    offset += static_cast<int64_t>(count);
    if (code == Z_STREAM_END) {
      member_open = false;
    } else if (file_ended && count == 0) {
      return Damaged("the gzip stream is truncated (" + std::to_string(file_size) + " bytes)");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Damaged(std::string("the gzip stream is damaged (") +
                     (stream.msg != nullptr ? stream.msg : "no reason given") + ")");
    }
  }
  return done;
}

ByteSource::ByteSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::Open(const std::string& path) {
  auto state = std::make_unique_for_overwrite<State>();
  state->path = path;
  KUMO_RETURN_IF_ERROR(state->Start());
  return ByteSource(std::move(state));
}

Result<size_t> ByteSource::Read(std::span<uint8_t> out) {
  return state_->compressed ? state_->Inflate(out) : state_->ReadPlain(out);
}

const std::string& ByteSource::path() const { return state_->path; }
bool ByteSource::compressed() const { return state_->compressed; }
int64_t ByteSource::file_size() const { return state_->file_size; }
int64_t ByteSource::max_content_size() const {
  return state_->compressed ? kMaxInflation * state_->file_size : state_->file_size;
}
int64_t ByteSource::offset() const { return state_->offset; }

}  // namespace kumo
