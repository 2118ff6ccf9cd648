#include "data/readers/all.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/text.h"
#include "data/readers/byte_source.h"
#include "data/readers/unpacked_file.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803;  // unsigned bytes, three extents
constexpr uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes, one extent
constexpr int64_t kMaxSide = 16384;            // pixels; so that products fit 64 bits
constexpr size_t kGrowthBytes = 64 << 20;      // allocated before the bytes are seen
constexpr size_t kPieceBytes = 256 << 10;
// Smaller contents are cheaper as private copies than as a shared file.
constexpr int64_t kWorthSharing = 4 << 20;  // bytes

struct IdxFile {
  ByteSource source;
  std::vector<int64_t> extents;
  int64_t header_size = 0;
  int64_t sample_size = 1;  // bytes

  int64_t count() const { return extents[0]; }
  int64_t content_size() const { return header_size + count() * sample_size; }
  const std::string& path() const { return source.path(); }
  // "60000 x 28 x 28"
  std::string ExtentsText() const;
};

std::string IdxFile::ExtentsText() const {
  std::string text = std::to_string(extents[0]);
  for (size_t i = 1; i < extents.size(); ++i) text += " x " + std::to_string(extents[i]);
  return text;
}

std::string Hex(uint32_t value) { return "0x" + HexDigits(value); }

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

Status Truncated(const IdxFile& file, int64_t size) {
  return DataLoss(file.path() + ": truncated: it ends at byte " + std::to_string(size) +
                  ", but its header announces " + std::to_string(file.content_size()) + " bytes (" +
                  file.ExtentsText() + "); download or create the file again");
}

Status TooLong(const IdxFile& file) {
  return DataLoss(file.path() + ": continues after byte " + std::to_string(file.content_size()) +
                  ", its end according to the header (" + file.ExtentsText() +
                  "); download or create the file again");
}

// Refuses implausible extents, and extents that do not match the file's size.
Status CheckExtents(const IdxFile& file) {
  if (file.count() == 0) {
    return InvalidArgument(file.path() + ": contains no samples (count 0 at byte 4)");
  }
  for (size_t i = 1; i < file.extents.size(); ++i) {
    if (file.extents[i] < 1 || file.extents[i] > kMaxSide) {
      return InvalidArgument(file.path() + ": extent " + std::to_string(file.extents[i]) +
                             " at byte " + std::to_string(4 + 4 * i) + " is not in 1.." +
                             std::to_string(kMaxSide) + "; the file is damaged or has no images");
    }
  }
  const int64_t most = file.source.max_content_size();
  if (file.content_size() > most) {
    if (!file.source.compressed()) return Truncated(file, most);
    return DataLoss(file.path() + ": its header announces " + std::to_string(file.content_size()) +
                    " bytes (" + file.ExtentsText() + "), which " +
                    std::to_string(file.source.file_size()) +
                    " bytes of gzip cannot hold; download or create the file again");
  }
  if (!file.source.compressed() && file.content_size() < most) return TooLong(file);
  return OkStatus();
}

// Opens `path` and reads its header. `kind` is "images" or "labels".
Result<IdxFile> OpenFile(const std::string& path, uint32_t magic, const std::string& kind) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  IdxFile file{std::move(source), {}};
  std::array<uint8_t, 16> header{};
  const size_t ranks = magic & 0xff;
  file.header_size = static_cast<int64_t>(4 + 4 * ranks);
  KUMO_ASSIGN_OR_RETURN(const size_t got,
                        file.source.Read(std::span(header).first(file.header_size)));
  const uint32_t found = BigEndian(header.data());
  if (got >= 4 && found != magic) {
    const bool swapped = found == kImagesMagic || found == kLabelsMagic;
    return InvalidArgument(path + ": magic number " + Hex(found) + " at byte 0 is not IDX " + kind +
                           "' " + Hex(magic) +
                           (swapped ? "; check whether the images' and labels' files are swapped"
                                    : "; name an IDX file of unsigned bytes, plain or gzip'd"));
  }
  if (got < static_cast<size_t>(file.header_size)) {
    return DataLoss(path + ": truncated: it ends at byte " + std::to_string(got) +
                    " of the IDX header's " + std::to_string(file.header_size) +
                    "; download or create the file again");
  }
  for (size_t i = 0; i < ranks; ++i) {
    file.extents.push_back(BigEndian(header.data() + 4 + 4 * i));
    if (i > 0) file.sample_size *= std::min(file.extents[i], kMaxSide + 1);
  }
  KUMO_RETURN_IF_ERROR(CheckExtents(file));
  return file;
}

// Passes on the content from here to the end, verified as far as the format allows (length and, for
// gzip, checksum).
Status PassOn(IdxFile& file, const Sink& sink) {
  std::vector<uint8_t> piece(kPieceBytes);
  while (file.source.offset() < file.content_size()) {
    const int64_t rest = file.content_size() - file.source.offset();
    const std::span out = std::span(piece).first(std::min<size_t>(piece.size(), rest));
    KUMO_ASSIGN_OR_RETURN(const size_t got, file.source.Read(out));
    if (got < out.size()) return Truncated(file, file.source.offset());
    KUMO_RETURN_IF_ERROR(sink(out));
  }
  // This read makes zlib verify the checksum after the last byte.
  uint8_t beyond = 0;
  KUMO_ASSIGN_OR_RETURN(const size_t more, file.source.Read({&beyond, 1}));
  return more > 0 ? TooLong(file) : OkStatus();
}

// Reads the content after the header and returns its first `keep` bytes; verifies the rest.
Result<std::vector<uint8_t>> ReadContent(IdxFile& file, int64_t keep) {
  std::vector<uint8_t> kept;
  // A plain file's size was compared with its header.
  if (!file.source.compressed()) kept.reserve(keep);
  while (std::ssize(kept) < keep) {
    // Doubles the bytes received, so that a header cannot make us allocate memory for nothing.
    const size_t have = kept.size();
    kept.resize(have + std::min<size_t>(std::max(have, kGrowthBytes), keep - have));
    const std::span out = std::span(kept).subspan(have);
    KUMO_ASSIGN_OR_RETURN(const size_t got, file.source.Read(out));
    if (got < out.size()) return Truncated(file, file.source.offset());
  }
  KUMO_RETURN_IF_ERROR(PassOn(file, [](std::span<const uint8_t>) { return OkStatus(); }));
  return kept;
}

// The samples that are requested.
int64_t SamplesOf(const IdxFile& images, int64_t limit) {
  return limit > 0 ? std::min(limit, images.count()) : images.count();
}

std::vector<int64_t> ExtentsOf(const IdxFile& images) {
  return {1, images.extents[1], images.extents[2]};
}

bool IsWorthSharing(const IdxFile& images, const ReaderRequest& request) {
  const int64_t kept = SamplesOf(images, request.limit) * images.sample_size;
  return !request.cache.empty() && images.source.compressed() && kept >= kWorthSharing;
}

PackedFile Pixels(const IdxFile& images) {
  return {images.path(), images.count() * images.sample_size};
}

// None if they cannot be kept or the file is damaged, which the next reader reports.
std::shared_ptr<const MappedFile> SharedPixels(const IdxFile& images, const std::string& cache) {
  auto mapped = MapUnpacked(cache, Pixels(images), [&](const Sink& sink) -> Status {
    KUMO_ASSIGN_OR_RETURN(IdxFile again, OpenFile(images.path(), kImagesMagic, "images"));
    return PassOn(again, sink);
  });
  if (mapped.ok()) return std::move(*mapped);
  LOG(WARNING) << "unpacks " << images.path()
               << " into private memory in each process: " << mapped.status().message();
  return nullptr;
}

Status CheckLabels(const IdxFile& file, const std::vector<uint8_t>& labels, int classes) {
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [classes](uint8_t label) { return label >= classes; });
  if (bad == labels.end()) return OkStatus();
  const int64_t index = bad - labels.begin();
  return InvalidArgument(file.path() + ": label " + std::to_string(*bad) + " of sample " +
                         std::to_string(index) + " (byte " +
                         std::to_string(file.header_size + index) +
                         ") is not below data.classes = " + std::to_string(classes) +
                         "; correct data.classes or the file");
}

}  // namespace

Result<DatasetExtents> MeasureIdx(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const IdxFile images, OpenFile(request.images, kImagesMagic, "images"));
  DatasetExtents extents{SamplesOf(images, request.limit), LabelledImage(ExtentsOf(images))};
  const bool mapped =
      IsWorthSharing(images, request) && CanMapUnpacked(request.cache, Pixels(images));
  extents.bytes = extents.samples * (BytesOf(extents.fields) - (mapped ? images.sample_size : 0));
  return extents;
}

Result<std::unique_ptr<Dataset>> OpenIdx(const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(IdxFile images, OpenFile(request.images, kImagesMagic, "images"));
  KUMO_ASSIGN_OR_RETURN(IdxFile labels, OpenFile(request.labels, kLabelsMagic, "labels"));
  if (images.count() != labels.count()) {
    return InvalidArgument(images.path() + " has " + std::to_string(images.count()) +
                           " images, but " + labels.path() + " has " +
                           std::to_string(labels.count()) + " labels; use matching files");
  }
  KUMO_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, ReadContent(labels, labels.count()));
  KUMO_RETURN_IF_ERROR(CheckLabels(labels, bytes, request.classes));
  const int64_t samples = SamplesOf(images, request.limit);
  const int64_t kept = samples * images.sample_size;
  std::vector<int32_t> classes(bytes.begin(), bytes.begin() + samples);
  if (IsWorthSharing(images, request)) {
    if (auto file = SharedPixels(images, request.cache)) {
      const std::span pixels = file->bytes().first(kept);
      return std::unique_ptr<Dataset>(
          std::make_unique<MemoryDataset>(images.path(), ExtentsOf(images), request.classes,
                                          std::move(file), pixels, std::move(classes)));
    }
  }
  KUMO_ASSIGN_OR_RETURN(std::vector<uint8_t> pixels, ReadContent(images, kept));
  return std::unique_ptr<Dataset>(std::make_unique<MemoryDataset>(
      images.path(), ExtentsOf(images), request.classes, std::move(pixels), std::move(classes)));
}

}  // namespace kumo
