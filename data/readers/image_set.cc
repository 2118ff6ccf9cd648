#include "data/readers/image_set.h"

#include <algorithm>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "data/readers/image_decoder.h"
#include "data/readers/images_on_demand.h"
#include "data/readers/unpacked_file.h"
#include "data/samples/dataset.h"
#include "data/samples/pixel_kernels.h"

namespace kumo {
namespace {

// The upper 8 of 16 bits, if the value has at most 12.
constexpr uint8_t kDark = 15;

// channels, height, width
using Extents = std::vector<int64_t>;

int64_t PixelsOf(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }

Status InFile(const ImageSet& set, int64_t index, const Status& error) {
  return {error.code(),
          set.container.Name(set.files[index]) + ": " + error.message() +
              (IsDamage(error) ? "; repair or remove it, or set data.damaged = skip" : "")};
}

// Warns of classes without any valid image, which cannot be learnt.
void WarnOfEmptyClasses(const ImageSet& set, std::span<const int32_t> labels) {
  std::vector<bool> found(set.class_names.size());
  for (const int32_t label : labels) {
    if (label < std::ssize(found)) found[label] = true;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      LOG(WARNING) << set.name << ": class " << set.class_names[i] << " has no valid image";
  }
}

bool IsPngName(std::string_view name) {
  return IsImageName(name) && (name.ends_with("png") || name.ends_with("PNG"));
}

// Size and channels of the first valid image.
Result<ImageTarget> TargetOf(const ImageSet& set, const ReaderRequest& request) {
  if (!request.image_size.empty()) {
    if (request.originals) return ImageTarget{{request.image_size[0], 0, 0}};
    return ImageTarget{request.image_size, true};
  }
  Status failed = OkStatus();
  for (int64_t i = 0; i < std::ssize(set.files); ++i) {
    Extents extents;
    KUMO_RETURN_IF_ERROR(
        ReadImages(set.container, std::span(set.files).subspan(i, 1),
                   [&](int64_t, const Result<std::span<const uint8_t>>& content) -> Status {
                     const Result<ImageHeader> header =
                         content.ok() ? ImageDecoder::ReadHeader(*content) : content.status();
                     failed = header.status();
                     if (header.ok()) extents = {header->channels, header->height, header->width};
                     return OkStatus();
                   }));
    if (!extents.empty()) return ImageTarget{extents, false};
    if (!request.skip_damaged) return InFile(set, i, failed);
  }
  return DataLoss(set.name + ": all images are damaged; " +
                  InFile(set, std::ssize(set.files) - 1, failed).message());
}

// Decoded images: the pixels of all images, valid ones first, then one byte per file: 1 if it is
// valid.
class Decoded {
 public:
  Decoded(const ImageSet& set, const ImageTarget& target, bool skip_damaged)
      : set_(set), target_(target), skip_damaged_(skip_damaged), bytes_(PixelsOf(target.extents)) {}

  static int64_t ContentSize(const ImageSet& set, const ImageTarget& target) {
    return std::ssize(set.files) * (PixelsOf(target.extents) + 1);
  }

  // ResourceExhausted if memory is short.
  Status ReadAll() {
    try {
      content_.resize(ContentSize(set_, target_));
    } catch (const std::bad_alloc&) {
      return TooMuch();
    } catch (const std::length_error&) {
      return TooMuch();
    }
    KUMO_RETURN_IF_ERROR(ReadImages(
        set_.container, set_.files,
        [this](int64_t index, const Result<std::span<const uint8_t>>& content) -> Status {
          const Status decoded = content.ok() ? Take(index, *content) : content.status();
          if (decoded.ok()) return OkStatus();
          if (!skip_damaged_ || !IsDamage(decoded)) return InFile(set_, index, decoded);
          LOG(WARNING) << "skips " << set_.container.Name(set_.files[index]) << ": "
                       << decoded.message();
          return OkStatus();
        }));
    MoveWholeOnesForward();
    return OkStatus();
  }

  std::vector<uint8_t>& content() { return content_; }

 private:
  Status TooMuch() const {
    return ResourceExhausted(set_.name + ": its " + std::to_string(set_.files.size()) +
                             " images of " + ExtentsText(target_.extents) +
                             " do not fit into memory; make data.image_size or the set smaller");
  }

  uint8_t& whole(int64_t index) { return content_[std::ssize(set_.files) * bytes_ + index]; }
  std::span<uint8_t> Pixels(int64_t index) {
    return std::span(content_).subspan(index * bytes_, bytes_);
  }

  Status Take(int64_t index, std::span<const uint8_t> file) {
    KUMO_RETURN_IF_ERROR(maker_.Make(file, target_, Pixels(index)));
    whole(index) = 1;
    return OkStatus();
  }

  void MoveWholeOnesForward() {
    int64_t next = 0;
    for (int64_t i = 0; i < std::ssize(set_.files); ++i) {
      if (whole(i) == 0) continue;
      if (next != i) std::ranges::copy(Pixels(i), Pixels(next).begin());
      ++next;
    }
  }

  const ImageSet& set_;
  const ImageTarget& target_;
  const bool skip_damaged_;
  const int64_t bytes_;  // of one image
  ImageMaker maker_;
  std::vector<uint8_t> content_;
};

bool IsWorthSharing(const ImageSet& set, const ReaderRequest& request) {
  return set.container.archive && !request.cache.empty();
}

// Identifies the files in their order and the conversion.
PackedFile SharedContent(const ImageSet& set, const ImageTarget& target, bool skip_damaged) {
  std::string part = "images 2 " + ExtentsText(target.extents) + (target.scale ? " scaled" : "") +
                     (skip_damaged ? " skipped" : "") + " " + set.container.inside;
  for (const std::string& file : set.files) part += "\n" + file;
  return {set.container.path, Decoded::ContentSize(set, target), part};
}

Result<std::vector<uint8_t>> DecodeAll(const ImageSet& set, const ImageTarget& target,
                                       bool skip_damaged) {
  Decoded decoded(set, target, skip_damaged);
  KUMO_RETURN_IF_ERROR(decoded.ReadAll());
  return std::move(decoded.content());
}

std::shared_ptr<const MappedFile> SharedPixels(const ImageSet& set, const ImageTarget& target,
                                               const ReaderRequest& request) {
  auto mapped = MapUnpacked(request.cache, SharedContent(set, target, request.skip_damaged),
                            [&](const Sink& sink) -> Status {
                              KUMO_ASSIGN_OR_RETURN(const std::vector<uint8_t> content,
                                                    DecodeAll(set, target, request.skip_damaged));
                              return sink(content);
                            });
  if (mapped.ok()) return std::move(*mapped);
  LOG(WARNING) << "decodes " << set.name
               << " into private memory in each process: " << mapped.status().message();
  return nullptr;
}

bool FitsIntoMemory(const ImageSet& set, const ImageTarget& target, const ReaderRequest& request) {
  return PixelsOf(target.extents) <= request.room / std::ssize(set.files);
}

// The files, if images are decoded at each read; null if all are decoded at the start.
Result<std::unique_ptr<ImageStore>> StoreOf(const ImageSet& set, const ImageTarget& target,
                                            const ReaderRequest& request) {
  std::unique_ptr<ImageStore> none;
  const bool must = target.of_any_size() || request.decode == DecodeImages::kOnDemand;
  if (must && request.skip_damaged) {
    return FailedPrecondition(
        set.name +
        ": data.damaged = skip requires decoding at the start, which data.decode = demand, "
        "data.crop_area and data.shorter_side exclude; remove the damaged images");
  }
  if (!must && (request.decode == DecodeImages::kAtStart || request.skip_damaged ||
                FitsIntoMemory(set, target, request))) {
    return none;
  }
  Result<std::unique_ptr<ImageStore>> store = ImageStore::Open(set.container, set.files);
  const bool cannot = store.status().code() == StatusCode::kFailedPrecondition;
  if (cannot && !must) return none;
  return store;
}

}  // namespace

// Values of 10 or 12 bits that are stored in 16 lose nearly all of their bits.
void AddRemarks(ImageSet* set) {
  const auto png = std::ranges::find_if(set->files, IsPngName);
  if (png == set->files.end()) return;
  ImageDecoder decoder;
  bool dark = false;
  const auto look = [&](int64_t, const Result<std::span<const uint8_t>>& file) -> Status {
    if (!file.ok()) return OkStatus();
    const Result<ImageHeader> header = ImageDecoder::ReadHeader(*file);
    if (!header.ok() || !header->deep) return OkStatus();
    const Result<std::span<const uint8_t>> pixels = decoder.Decode(*file, kColours);
    dark = pixels.ok() && std::ranges::max(*pixels) <= kDark;
    return OkStatus();
  };
  const Status read = ReadImages(set->container, std::span(&*png, 1), look);
  if (!read.ok() || !dark) return;  // others report errors
  set->notes.remarks.push_back(
      set->container.Name(*png) +
      " has 16 bits per value, but no value above 4095; only the upper 8 bits are read, so that "
      "the "
      "image is nearly black: scale the values of such images up, or store them in 8 bits");
}

bool IsDamage(const Status& error) {
  return error.code() == StatusCode::kDataLoss || error.code() == StatusCode::kInvalidArgument ||
         error.code() == StatusCode::kNotFound;
}

Result<DatasetExtents> MeasureImageSet(const ImageSet& set, const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ImageTarget target, TargetOf(set, request));
  KUMO_ASSIGN_OR_RETURN(const auto store, StoreOf(set, target, request));
  if (store != nullptr) {
    LOG(INFO) << set.name << ": images are decoded at each read";
    const int64_t samples = std::ssize(set.files);
    return DatasetExtents{samples, LabelledImage(target.extents),
                          samples * static_cast<int64_t>(sizeof(int32_t)) + store->bytes(),
                          set.notes};
  }
  DatasetExtents extents{std::ssize(set.files), LabelledImage(target.extents)};
  extents.notes = set.notes;
  const bool mapped =
      IsWorthSharing(set, request) &&
      CanMapUnpacked(request.cache, SharedContent(set, target, request.skip_damaged));
  extents.bytes =
      extents.samples * (BytesOf(extents.fields) - (mapped ? PixelsOf(target.extents) : 0));
  return extents;
}

Result<std::unique_ptr<Dataset>> OpenImageSet(ImageSet set, const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ImageTarget target, TargetOf(set, request));
  KUMO_ASSIGN_OR_RETURN(auto store, StoreOf(set, target, request));
  if (store != nullptr) {
    return std::unique_ptr<Dataset>(std::make_unique<ImagesOnDemand>(
        std::move(set), std::move(store), target, request.classes));
  }
  std::shared_ptr<const MappedFile> file;
  if (IsWorthSharing(set, request)) file = SharedPixels(set, target, request);
  std::vector<uint8_t> own;
  if (file == nullptr) {
    KUMO_ASSIGN_OR_RETURN(own, DecodeAll(set, target, request.skip_damaged));
  }
  const std::span<const uint8_t> content =
      file == nullptr ? std::span<const uint8_t>(own) : file->bytes();
  const int64_t files = std::ssize(set.files);
  const int64_t bytes = PixelsOf(target.extents);
  const std::span<const uint8_t> whole = content.subspan(files * bytes, files);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < files; ++i) {
    if (whole[i] != 0) labels.push_back(set.labels[i]);
  }
  if (labels.empty()) return DataLoss(set.name + ": all images are damaged");
  const int64_t used = std::ssize(labels) * bytes;
  if (std::ssize(labels) < files) {
    LOG(WARNING) << set.name << ": " << files - std::ssize(labels) << " of " << files
                 << " images are damaged and were skipped";
    WarnOfEmptyClasses(set, labels);
  }
  std::unique_ptr<MemoryDataset> dataset;
  if (file != nullptr) {
    dataset =
        std::make_unique<MemoryDataset>(set.name, target.extents, request.classes, std::move(file),
                                        content.first(used), std::move(labels));
  } else {
    own.resize(used);
    dataset = std::make_unique<MemoryDataset>(set.name, target.extents, request.classes,
                                              std::move(own), std::move(labels));
  }
  dataset->NameClasses(std::move(set.class_names));
  dataset->Note(std::move(set.notes));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace kumo
