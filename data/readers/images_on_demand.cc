#include "data/readers/images_on_demand.h"

#include <zlib.h>

#include <algorithm>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "data/samples/dataset.h"

namespace kumo {

namespace {

constexpr size_t kLoggedImages = 20;

ImageSet WithoutFiles(ImageSet set) {
  set.files = {};
  return set;
}

}  // namespace

ImagesOnDemand::ImagesOnDemand(ImageSet set, std::unique_ptr<ImageStore> store, ImageTarget target,
                               const ReaderRequest& request)
    : set_(WithoutFiles(std::move(set))),
      store_(std::move(store)),
      target_(std::move(target)),
      fields_(LabelledImage(target_.extents)),
      classes_(request.classes),
      skip_damaged_(request.skip_damaged),
      parts_(PartsToKeep(request, size())),
      survey_(request.survey != nullptr) {
  CHECK_EQ(store_->size(), size()) << name();
}

Status ImagesOnDemand::ReadKey(const SampleKey& key, Sample* sample) const {
  const int64_t index = key.sample;
  CHECK(index >= 0 && index < size()) << name() << ": sample " << index << " of " << size();
  std::unique_ptr<Workplace> workplace = TakeWorkplace();
  const Result<int64_t> read = ReadOrReplace(index, *workplace, sample);
  if (read.ok()) {
    sample->Borrow(kLabel, std::as_bytes(std::span(set_.labels).subspan(*read, 1)));
  }
  MutexLock lock(mutex_);
  idle_.push_back(std::move(workplace));
  return read.status();
}

Result<int64_t> ImagesOnDemand::ReadOrReplace(int64_t index, Workplace& workplace,
                                              Sample* sample) const {
  std::vector<std::pair<int64_t, Status>> found;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t next = (index + i) % size();
    if (!parts_.empty() && parts_[next] != parts_[index]) continue;
    if (skip_damaged_ && IsKnownAsDamaged(next)) continue;
    const Status read = ReadImage(next, workplace, sample);
    if (read.ok()) {
      for (const auto& [damaged, why] : found) WarnOfReplaced(Name(damaged), why, Name(next));
      return next;
    }
    if (survey_) return Status(read.code(), Name(next) + ": " + read.message());
    if (!skip_damaged_ || !IsDamage(read)) return OfImage(Name(next), read);
    if (NoteDamage(next)) found.emplace_back(next, read);
  }
  return DataLoss(name() + (parts_.empty() ? ": all images are damaged"
                                           : ": all images of one part are damaged"));
}

bool ImagesOnDemand::NoteDamage(int64_t index) const {
  MutexLock lock(mutex_);
  if (!damaged_.insert(index).second) return false;
  if (damaged_.size() == kLoggedImages + 1) {
    LOG(WARNING) << name() << ": more than " << kLoggedImages
                 << " images are damaged; kumo check --data lists all of them";
  }
  return damaged_.size() <= kLoggedImages;
}

bool ImagesOnDemand::IsKnownAsDamaged(int64_t index) const {
  MutexLock lock(mutex_);
  return damaged_.contains(index);
}

std::unique_ptr<ImagesOnDemand::Workplace> ImagesOnDemand::TakeWorkplace() const {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workplace> workplace = std::move(idle_.back());
      idle_.pop_back();
      return workplace;
    }
  }
  return std::make_unique<Workplace>();
}

Status ImagesOnDemand::ReadImage(int64_t index, Workplace& workplace, Sample* sample) const {
  KUMO_RETURN_IF_ERROR(store_->Read(index, &workplace.file));
  if (!target_.of_any_size()) {
    return workplace.maker.Make(workplace.file, target_,
                                sample->MakePixels(kImage, target_.extents));
  }
  ImageDecoder& decoder = workplace.maker.decoder();
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ImageDecoder::ReadHeader(workplace.file));
  const std::vector<int64_t> extents = {target_.extents[0], header.height, header.width};
  return decoder.DecodeTo(workplace.file, header, static_cast<int>(extents[0]),
                          sample->MakePixels(kImage, extents));
}

namespace {

constexpr size_t kSourcePieceBytes = 64 << 10;
constexpr size_t kSlackBytes = 512;

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

// Inflates the data at `offset`, exactly as many bytes as `content` has.
Status Inflate(ReadableFile& file, uint64_t offset, std::vector<uint8_t>* content) {
  Inflater inflater;
  if (!inflater.ready()) return ResourceExhausted("no memory to unpack it");
  z_stream& stream = inflater.stream();
  std::vector<uint8_t> piece;
  // Compressed data are rarely longer than the content.
  const size_t at_once = std::min(kSourcePieceBytes, content->size() + kSlackBytes);
  // One byte more than expected, to detect a stream that continues.
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
  return whole ? OkStatus() : DataLoss("its data in the archive are damaged or truncated");
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
    return InvalidArgument("exceeds " + std::to_string(kMaxImageFileBytes) +
                           " bytes, the limit of an image file");
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
