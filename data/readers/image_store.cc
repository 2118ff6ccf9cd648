#include "data/readers/image_store.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <span>

namespace kumo {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr size_t kSlackBytes = 512;

std::span<std::byte> BytesOf(std::vector<uint8_t>& content) {
  return std::as_writable_bytes(std::span(content));
}

// RFC 1951, without a wrapper, which says itself where it ends.
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

// What begins at `offset`; exactly as many bytes as `content` has.
Status Inflate(ReadableFile& file, uint64_t offset, std::vector<uint8_t>* content) {
  Inflater inflater;
  if (!inflater.ready()) return ResourceExhausted("no memory to unpack it");
  z_stream& stream = inflater.stream();
  std::vector<uint8_t> piece;
  // Packed it is seldom longer than unpacked.
  const size_t at_once = std::min(kPieceBytes, content->size() + kSlackBytes);
  // A byte more than there is to be: a stream that goes on is noticed.
  content->push_back(0);
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
  const bool whole = code == Z_STREAM_END && stream.avail_out == 1;
  content->pop_back();
  return whole ? OkStatus() : DataLoss("what the archive has of it is damaged or cut off");
}

}  // namespace

Result<std::unique_ptr<ImageStore>> ImageStore::Open(const ImageContainer& container,
                                                     std::vector<std::string> names) {
  std::unique_ptr<ImageStore> store(new ImageStore(container, std::move(names)));
  if (!container.archive) return store;
  KUMO_ASSIGN_OR_RETURN(store->places_, LocateImages(container, store->names_));
  KUMO_ASSIGN_OR_RETURN(store->file_, PosixFileSystem().OpenForReading(container.path));
  return store;
}

int64_t ImageStore::bytes() const {
  int64_t bytes = std::ssize(places_) * static_cast<int64_t>(sizeof(ArchivePlace));
  for (const std::string& name : names_) {
    bytes += static_cast<int64_t>(sizeof(std::string) + name.capacity());
  }
  return bytes;
}

Status ImageStore::Read(int64_t index, std::vector<uint8_t>* content) const {
  if (container_.archive) return ReadFromArchive(places_[index], content);
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const auto file,
                        files.OpenForReading(JoinPath(container_.path, names_[index])));
  if (file->size() > static_cast<uint64_t>(kMaxImageFileBytes)) {
    return InvalidArgument("longer than " + std::to_string(kMaxImageFileBytes) +
                           " bytes, which no image of a data set is");
  }
  content->resize(file->size());
  return file->Read(0, BytesOf(*content));
}

Status ImageStore::ReadFromArchive(const ArchivePlace& place, std::vector<uint8_t>* content) const {
  content->resize(static_cast<size_t>(place.size));
  if (place.deflated) return Inflate(*file_, static_cast<uint64_t>(place.offset), content);
  return file_->Read(static_cast<uint64_t>(place.offset), BytesOf(*content));
}

}  // namespace kumo
