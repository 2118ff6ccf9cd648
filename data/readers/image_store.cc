#include "data/readers/image_store.h"

#include <zlib.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/printable.h"
#include "data/readers/image_decoder.h"

namespace kumo {
namespace {

constexpr size_t kSourcePieceBytes = 64 << 10;
constexpr size_t kSlackBytes = 512;
// Headers of JPEGs without large profiles and previews are shorter.
constexpr int64_t kHeaderBytes = 16 << 10;

std::span<std::byte> BytesOf(std::vector<uint8_t>& content) {
  return std::as_writable_bytes(std::span(content));
}

// Inflates RFC 1951 data without a wrapper, which marks their own end.
class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, -15) == Z_OK) {}
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  const bool ready_;
};

// Inflates the data at `offset`, exactly as many bytes as `content` has. whole: they are all, and
// more bytes are damage.
Status Inflate(ReadableFile& file, uint64_t offset, bool whole, std::vector<uint8_t>* content) {
  Inflater inflater;
  if (!inflater.ready()) return ResourceExhausted("no memory to unpack it");
  z_stream& stream = inflater.stream();
  std::vector<uint8_t> piece;
  // Compressed data are rarely longer than the content.
  const size_t at_once = std::min(kSourcePieceBytes, content->size() + kSlackBytes);
  // One byte more than expected, to detect a stream that continues.
  if (whole) content->push_back(0);
  stream.next_out = content->data();
  stream.avail_out = static_cast<uInt>(content->size());
  int code = Z_OK;
  while (code == Z_OK && stream.avail_out > 0 && offset < file.size()) {
    piece.resize(std::min<uint64_t>(at_once, file.size() - offset));
    KUMO_RETURN_IF_ERROR(file.Read(offset, BytesOf(piece)));
    offset += piece.size();
    stream.next_in = piece.data();
    stream.avail_in = static_cast<uInt>(piece.size());
    code = inflate(&stream, Z_NO_FLUSH);
  }
  const bool good = whole ? code == Z_STREAM_END && stream.avail_out == 1 : stream.avail_out == 0;
  if (whole) content->pop_back();
  return good ? OkStatus() : DataLoss("its data in the archive are damaged or truncated");
}

}  // namespace

Result<std::unique_ptr<ImageStore>> ImageStore::Open(const ImageContainer& container,
                                                     std::vector<std::string> names,
                                                     const Options& options) {
  std::unique_ptr<ImageStore> store(new ImageStore(container, std::move(names)));
  if (!container.archive) return store;
  Result<std::vector<ArchivePlace>> places = LocateImages(container, store->names_);
  if (places.ok()) {
    store->places_ = std::move(places).value();
    KUMO_ASSIGN_OR_RETURN(store->file_, PosixFileSystem().OpenForReading(container.path));
  } else if (places.status().code() == StatusCode::kFailedPrecondition && options.room > 0) {
    KUMO_RETURN_IF_ERROR(store->TakeAll(options.room));
  } else {
    return places.status();
  }
  if (!options.may_lack_files) KUMO_RETURN_IF_ERROR(store->CheckAllThere());
  return store;
}

Status ImageStore::TakeAll(int64_t room) {
  places_.assign(names_.size(), {.size = ArchivePlace::kMissing});
  contents_.resize(names_.size());
  int64_t bytes = 0;
  return ReadImages(
      container_, names_,
      [&](int64_t index, const Result<std::span<const uint8_t>>& content) -> Status {
        if (!content.ok()) {
          // Missing files keep their mark.
          return content.status().code() == StatusCode::kNotFound ? OkStatus() : content.status();
        }
        bytes += std::ssize(*content);
        if (bytes > room) {
          return FailedPrecondition(
              container_.Name("") +
              ": its images must be unpacked from the archive's start, and kept in memory they "
              "would exceed " +
              HumanBytes(static_cast<uint64_t>(room)) +
              "; unpack the archive, or repack it as plain .tar or .zip");
        }
        places_[index].size = std::ssize(*content);
        contents_[index].assign(content->begin(), content->end());
        return OkStatus();
      });
}

Status ImageStore::CheckAllThere() const {
  for (int64_t i = 0; i < size(); ++i) {
    if (places_[i].missing()) return NotFound(Name(i) + ": no such file in the archive");
  }
  return OkStatus();
}

int64_t ImageStore::bytes() const {
  int64_t bytes = std::ssize(places_) * static_cast<int64_t>(sizeof(ArchivePlace));
  for (const std::string& name : names_) {
    bytes += static_cast<int64_t>(sizeof(std::string) + name.capacity());
  }
  for (const std::vector<uint8_t>& content : contents_) {
    bytes += static_cast<int64_t>(sizeof content + content.capacity());
  }
  return bytes;
}

Status ImageStore::Read(int64_t index, std::vector<uint8_t>* content) const {
  return ReadStart(index, kMaxImageFileBytes, content);
}

Status ImageStore::ReadStart(int64_t index, int64_t most, std::vector<uint8_t>* content) const {
  if (!container_.archive) {
    PosixFileSystem files;
    KUMO_ASSIGN_OR_RETURN(const auto file,
                          files.OpenForReading(JoinPath(container_.path, names_[index])));
    if (file->size() > static_cast<uint64_t>(kMaxImageFileBytes)) {
      return InvalidArgument("exceeds " + std::to_string(kMaxImageFileBytes) +
                             " bytes, the limit of an image file");
    }
    content->resize(std::min(file->size(), static_cast<uint64_t>(most)));
    return file->Read(0, BytesOf(*content));
  }
  const ArchivePlace& place = places_[index];
  if (place.missing()) return NotFound("there is no such file in the archive");
  if (!contents_.empty()) {
    const std::vector<uint8_t>& whole = contents_[index];
    content->assign(whole.begin(), whole.begin() + std::min(most, std::ssize(whole)));
    return OkStatus();
  }
  const auto offset = static_cast<uint64_t>(place.offset);
  content->resize(static_cast<size_t>(std::min(most, place.size)));
  if (place.deflated) return Inflate(*file_, offset, place.size <= most, content);
  return file_->Read(offset, BytesOf(*content));
}

Result<ImageHeader> ImageStore::ReadHeader(int64_t index, std::vector<uint8_t>* buffer) const {
  KUMO_RETURN_IF_ERROR(ReadStart(index, kHeaderBytes, buffer));
  // A JPEG's header ends where its pixels begin; a PNG may have its orientation behind the pixels.
  const bool jpeg = !buffer->empty() && buffer->front() == 0xff;
  if (jpeg) {
    Result<ImageHeader> header = ImageDecoder::ReadHeader(*buffer);
    if (header.ok() || std::ssize(*buffer) < kHeaderBytes) return header;
  }
  if (std::ssize(*buffer) >= kHeaderBytes) KUMO_RETURN_IF_ERROR(Read(index, buffer));
  return ImageDecoder::ReadHeader(*buffer);
}

}  // namespace kumo
