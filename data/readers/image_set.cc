#include "data/readers/image_set.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "data/readers/image_decoder.h"
#include "data/readers/image_store.h"
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

// For each image its own index if it is valid, else the index of the next valid one of its part, in
// the order of the set and from its end to its start. Empty if an image has none. parts: empty if
// all images are one part.
std::vector<int64_t> ValidImages(std::span<const uint8_t> valid, std::span<const SplitPart> parts) {
  std::array<int64_t, 2> next = {-1, -1};  // by part
  const auto next_of = [&](int64_t image) -> int64_t& {
    return next[parts.empty() ? 0 : static_cast<size_t>(parts[image])];
  };
  std::vector<int64_t> images(valid.size());
  // The second time the last images know the first ones.
  for (int time = 0; time < 2; ++time) {
    for (int64_t i = std::ssize(valid) - 1; i >= 0; --i) {
      if (valid[i] != 0) next_of(i) = i;
      images[i] = next_of(i);
    }
  }
  if (std::ranges::find(images, -1) != images.end()) images.clear();
  return images;
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

// PNGs by which remarks judge: spread over the set, but of an archive the first ones, since it may
// have to be unpacked up to the last of them.
std::vector<std::string> SampledPngs(const ImageSet& set) {
  constexpr size_t kMost = 16;
  std::vector<std::string> samples;
  std::ranges::copy_if(set.files, std::back_inserter(samples), IsPngName);
  if (samples.size() <= kMost) return samples;
  for (size_t i = 0; i < kMost && !set.container.archive; ++i) {
    std::swap(samples[i], samples[i * samples.size() / kMost]);
  }
  samples.resize(kMost);
  return samples;
}

// True if a damaged image does not end the opening of its set.
bool PassesOver(const ReaderRequest& request, const Status& error) {
  return (request.skip_damaged || request.survey != nullptr) && IsDamage(error);
}

// Size and channels of the first valid image.
Result<ImageTarget> TargetOf(const ImageSet& set, const ReaderRequest& request) {
  if (!request.image_size.empty()) {
    if (request.originals) return ImageTarget{{request.image_size[0], 0, 0}};
    return ImageTarget{request.image_size, /*scale=*/true, request.resize == ResizeMode::kStretch};
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
    if (!PassesOver(request, failed)) {
      return OfImage(set.container.Name(set.files[i]), failed);
    }
  }
  return DataLoss(set.name + ": all images are damaged; " +
                  OfImage(set.container.Name(set.files.back()), failed).message());
}

constexpr size_t kNamedImages = 10;  // in a message

// Decoded images: the pixels of all images, then one byte per file: 1 if it is valid. A damaged
// image has the pixels of the next valid one (ValidImages), if damaged images are skipped.
class Decoded {
 public:
  Decoded(const ImageSet& set, const ImageTarget& target, const ReaderRequest& request)
      : set_(set), target_(target), request_(request), bytes_(PixelsOf(target.extents)) {}

  static int64_t ContentSize(const ImageSet& set, const ImageTarget& target) {
    return std::ssize(set.files) * (PixelsOf(target.extents) + 1);
  }

  // ResourceExhausted if memory is short. Names all damaged images, unless they are skipped.
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
          if (!IsDamage(decoded)) return OfImage(Name(index), decoded);
          damaged_.emplace(index, decoded);
          return OkStatus();
        }));
    if (damaged_.empty()) return OkStatus();
    const bool all = std::ssize(damaged_) == std::ssize(set_.files);
    if (!all && request_.survey == nullptr && !request_.skip_damaged) return Refusal();
    const std::vector<int64_t> images =
        ValidImages(Valid(), PartsToKeep(request_, std::ssize(set_.files)));
    if (images.empty()) {
      return DataLoss(set_.name + (all ? ": all images" : ": all images of one part") +
                      " are damaged; " +
                      OfImage(Name(damaged_.begin()->first), damaged_.begin()->second).message());
    }
    Replace(images);
    return OkStatus();
  }

  std::vector<uint8_t>& content() { return content_; }

 private:
  Status TooMuch() const {
    return ResourceExhausted(set_.name + ": its " + std::to_string(set_.files.size()) +
                             " images of " + ExtentsText(target_.extents) +
                             " do not fit into memory; make data.image_size or the set smaller");
  }

  std::string Name(int64_t index) const { return set_.container.Name(set_.files[index]); }
  std::span<uint8_t> Valid() { return std::span(content_).last(set_.files.size()); }
  std::span<uint8_t> Pixels(int64_t index) {
    return std::span(content_).subspan(index * bytes_, bytes_);
  }

  Status Take(int64_t index, std::span<const uint8_t> file) {
    KUMO_RETURN_IF_ERROR(maker_.Make(file, target_, Pixels(index)).status());
    Valid()[index] = 1;
    return OkStatus();
  }

  // Names the first damaged images.
  Status Refusal() const {
    const auto& [first, error] = *damaged_.begin();
    if (damaged_.size() == 1) return OfImage(Name(first), error);
    std::string text;
    size_t named = 0;
    for (const auto& [index, why] : damaged_) {
      if (named == kNamedImages) break;
      text += (named++ == 0 ? "" : "; ") + Name(index) + ": " + why.message();
    }
    if (named < damaged_.size()) {
      text += "; and " + std::to_string(damaged_.size() - named) + " more";
    }
    return DataLoss(set_.name + ": " + std::to_string(damaged_.size()) + " of " +
                    std::to_string(set_.files.size()) + " images are damaged: " + text +
                    std::string(kDamageAdvice));
  }

  // images: of ValidImages.
  void Replace(std::span<const int64_t> images) {
    size_t named = 0;
    for (const auto& [index, why] : damaged_) {
      const int64_t next = images[index];
      std::ranges::copy(Pixels(next), Pixels(index).begin());
      if (request_.survey != nullptr) {
        request_.survey->push_back(Name(index) + ": " + why.message());
      } else if (named++ < kNamedImages) {
        WarnOfReplaced(Name(index), why, Name(next));
      }
    }
  }

  const ImageSet& set_;
  const ImageTarget& target_;
  const ReaderRequest& request_;
  const int64_t bytes_;  // of one image
  ImageMaker maker_;
  std::vector<uint8_t> content_;
  std::map<int64_t, Status> damaged_;
};

bool IsWorthSharing(const ImageSet& set, const ReaderRequest& request) {
  return set.container.archive && !request.cache.empty() && request.survey == nullptr;
}

// Identifies the files in their order and the conversion.
PackedFile SharedContent(const ImageSet& set, const ImageTarget& target,
                         const ReaderRequest& request) {
  const int64_t images = std::ssize(set.files);
  std::string part = "images 2 " + ExtentsText(target.extents) + (target.scale ? " scaled" : "") +
                     (target.stretch ? " stretched" : "") +
                     (request.skip_damaged ? " replaced" : "");
  if (!PartsToKeep(request, images).empty()) {
    part += " beside " + std::to_string(ValidationSamples(images, request.split_share));
  }
  part += " " + set.container.inside;
  for (const std::string& file : set.files) part += "\n" + file;
  return {set.container.path, Decoded::ContentSize(set, target), part};
}

Result<std::vector<uint8_t>> DecodeAll(const ImageSet& set, const ImageTarget& target,
                                       const ReaderRequest& request) {
  Decoded decoded(set, target, request);
  KUMO_RETURN_IF_ERROR(decoded.ReadAll());
  return std::move(decoded.content());
}

std::shared_ptr<const MappedFile> SharedPixels(const ImageSet& set, const ImageTarget& target,
                                               const ReaderRequest& request) {
  auto mapped = MapUnpacked(
      request.cache, SharedContent(set, target, request), [&](const Sink& sink) -> Status {
        KUMO_ASSIGN_OR_RETURN(const std::vector<uint8_t> content, DecodeAll(set, target, request));
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
  const bool may = request.survey != nullptr ||
                   (request.decode == DecodeImages::kAuto && !FitsIntoMemory(set, target, request));
  if (!must && !may) return none;
  Result<std::unique_ptr<ImageStore>> store = ImageStore::Open(set.container, set.files);
  const bool cannot = store.status().code() == StatusCode::kFailedPrecondition;
  if (cannot && !must) return none;
  return store;
}

}  // namespace

// Values of 10 or 12 bits that are stored in 16 lose nearly all of their bits.
void AddRemarks(ImageSet* set) {
  const std::vector<std::string> samples = SampledPngs(*set);
  ImageDecoder decoder;
  std::string dark;
  int64_t decoded = 0;  // pixels
  const auto look = [&](int64_t index, const Result<std::span<const uint8_t>>& file) -> Status {
    if (!file.ok() || !dark.empty() || decoded > kMaxImagePixels) return OkStatus();
    const Result<ImageHeader> header = ImageDecoder::ReadHeader(*file);
    if (!header.ok() || !header->deep) return OkStatus();
    decoded += header->height * header->width;
    const Result<std::span<const uint8_t>> pixels = decoder.Decode(*file, kColours);
    if (pixels.ok() && std::ranges::max(*pixels) <= kDark) dark = samples[index];
    return OkStatus();
  };
  const Status read = ReadImages(set->container, samples, look);
  if (!read.ok() || dark.empty()) return;  // others report errors
  set->notes.remarks.push_back(
      set->container.Name(dark) +
      " has 16 bits per value, but no value above 4095; only the upper 8 bits are read, so that "
      "the image is nearly black: scale the values of such images up, or store them in 8 bits");
}

Status OfImage(const std::string& name, const Status& error) {
  return {error.code(),
          name + ": " + error.message() + (IsDamage(error) ? std::string(kDamageAdvice) : "")};
}

void WarnOfReplaced(const std::string& name, const Status& error, const std::string& by) {
  LOG(WARNING) << name << ": " << error.message() << "; " << by << " takes its place";
}

Status CheckDamaged(const std::map<int64_t, Status>& damaged, int64_t images,
                    const ReaderRequest& request) {
  if (damaged.empty()) return OkStatus();
  const auto count = std::ssize(damaged);
  const bool passes = request.skip_damaged || request.survey != nullptr;
  if (passes && count < images) return OkStatus();
  const Status& first = damaged.begin()->second;
  const std::string others =
      count == 1 ? "" : " (and " + std::to_string(count - 1) + " more such images)";
  return {first.code(), first.message() + others + std::string(kDamageAdvice)};
}

Result<LeftOut> TakeLeftOut(const ImageContainer& container, ImageListing* listing,
                            const ReaderRequest& request) {
  LeftOut left_out = std::move(listing->left_out);
  for (const auto& [name, why] : listing->unusable) {
    if (request.survey != nullptr) {
      request.survey->push_back(container.Name(name) + ": " + why);
    } else if (!request.skip_damaged) {
      const size_t others = listing->unusable.size() - 1;
      return InvalidArgument(
          container.Name(name) + " " + why +
          (others == 0 ? "" : " (and " + std::to_string(others) + " more such entries)") +
          "; repair or remove it, or set data.damaged = skip");
    }
    left_out.unusable.push_back(name + " " + why);
  }
  return left_out;
}

std::vector<SplitPart> PartsToKeep(const ReaderRequest& request, int64_t images) {
  if (!request.skip_damaged || request.split_share == 0 || images < 2) return {};
  return PartsOfSamples(images, request.split_share);
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
    DatasetExtents extents{samples, LabelledImage(target.extents),
                           samples * static_cast<int64_t>(sizeof(int32_t)) + store->bytes(),
                           set.notes};
    extents.class_names = set.class_names;
    return extents;
  }
  DatasetExtents extents{std::ssize(set.files), LabelledImage(target.extents)};
  extents.notes = set.notes;
  extents.class_names = set.class_names;
  const bool mapped = IsWorthSharing(set, request) &&
                      CanMapUnpacked(request.cache, SharedContent(set, target, request));
  extents.bytes =
      extents.samples * (BytesOf(extents.fields) - (mapped ? PixelsOf(target.extents) : 0));
  return extents;
}

Result<std::unique_ptr<Dataset>> OpenImageSet(ImageSet set, const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const ImageTarget target, TargetOf(set, request));
  KUMO_ASSIGN_OR_RETURN(auto store, StoreOf(set, target, request));
  if (store != nullptr) {
    return std::unique_ptr<Dataset>(
        std::make_unique<ImagesOnDemand>(std::move(set), std::move(store), target, request));
  }
  std::shared_ptr<const MappedFile> file;
  if (IsWorthSharing(set, request)) file = SharedPixels(set, target, request);
  std::vector<uint8_t> own;
  if (file == nullptr) {
    KUMO_ASSIGN_OR_RETURN(own, DecodeAll(set, target, request));
  }
  const std::span<const uint8_t> content =
      file == nullptr ? std::span<const uint8_t>(own) : file->bytes();
  const int64_t files = std::ssize(set.files);
  const int64_t bytes = PixelsOf(target.extents);
  const std::span<const uint8_t> valid = content.subspan(files * bytes, files);
  const std::vector<int64_t> images = ValidImages(valid, PartsToKeep(request, files));
  if (images.empty()) return DataLoss(set.name + ": all images of it, or of one part, are damaged");
  std::vector<int32_t> labels;
  for (const int64_t image : images) labels.push_back(set.labels[image]);
  const int64_t damaged = std::ranges::count(valid, 0);
  const int64_t used = files * bytes;
  if (damaged > 0 && request.survey == nullptr) {
    LOG(WARNING) << set.name << ": " << damaged << " of " << files
                 << " images are damaged and were replaced by the next valid ones";
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
  if (damaged > 0) dataset->SetSampleClasses(std::move(set.labels));
  dataset->NameClasses(std::move(set.class_names));
  dataset->Note(std::move(set.notes));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace kumo
