#include "data/finders/found_dataset.h"

#include <algorithm>
#include <span>

#include "common/base/text.h"
#include "common/job/fields.h"
#include "data/readers/byte_source.h"
#include "data/readers/image_decoder.h"

namespace kumo {
namespace {

constexpr size_t kLookedAt = 64 << 10;      // bytes of a file
constexpr int64_t kMeasuredImages = 200;    // of a set, for their sizes
constexpr int64_t kLargestKeptSide = 96;    // larger images are scaled
constexpr int64_t kSides[] = {96, 64, 32};  // to one of these
// The same of images with masks.
constexpr int64_t kLargestMaskedSide = 128;
constexpr int64_t kMaskedStep = 8;
constexpr int64_t kMaskedSides[] = {128, 96, 64, 32, 16, 8};

int64_t SideFor(int64_t side, std::span<const int64_t> sides) {
  const auto fitting = std::ranges::find_if(sides, [&](int64_t s) { return s <= side; });
  return fitting == sides.end() ? std::max<int64_t>(side, 8) : *fitting;
}

void ScaleTo(const ImageSizes& sizes, int64_t side, Experiment::Data* data) {
  data->image_size = ExtentsText(std::vector<int64_t>{sizes.colour ? 3 : 1, side, side});
}

}  // namespace

NamedPart PartIn(std::string_view name) {
  const std::string lower = LowerCase(name);
  const auto has = [&](const char* word) { return lower.find(word) != std::string::npos; };
  if (has("train")) return NamedPart::kTraining;
  if (has("val") || has("test") || has("t10k")) return NamedPart::kValidation;
  return NamedPart::kNone;
}

std::pair<std::string, std::string> PartsOf(const std::vector<std::string>& names) {
  std::string train, validation;
  for (const std::string& name : names) {
    std::string& file = PartIn(name) == NamedPart::kValidation ? validation : train;
    if (file.empty()) file = name;
  }
  if (train.empty()) std::swap(train, validation);
  return {train, validation};
}

Result<std::string> StartOf(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::string start(kLookedAt, '\0');
  KUMO_ASSIGN_OR_RETURN(
      const size_t size,
      source.Read(std::span(reinterpret_cast<uint8_t*>(start.data()), start.size())));
  start.resize(size);
  return std::string(WithoutByteOrderMark(start));
}

Result<ImageSizes> SizesOf(const ImageContainer& container, const std::vector<std::string>& files) {
  const int64_t count = std::min<int64_t>(kMeasuredImages, std::ssize(files));
  std::vector<std::string> some;
  for (int64_t i = 0; i < count; ++i) some.push_back(files[i * std::ssize(files) / count]);
  ImageSizes sizes;
  std::vector<int64_t> sides;
  KUMO_RETURN_IF_ERROR(ReadImages(
      container, some, [&](int64_t, const Result<std::span<const uint8_t>>& content) -> Status {
        if (!content.ok()) return OkStatus();
        const Result<ImageHeader> header = ImageDecoder::ReadHeader(*content);
        if (!header.ok()) return OkStatus();
        const std::vector<int64_t> extents = {header->channels, header->height, header->width};
        if (sizes.first.empty()) sizes.first = extents;
        sizes.equal &= extents == sizes.first;
        sizes.colour |= header->channels == 3;
        sides.push_back(std::min(header->height, header->width));
        return OkStatus();
      }));
  if (sides.empty()) return DataLoss(container.Name("") + ": no image can be decoded");
  std::ranges::nth_element(sides, sides.begin() + std::ssize(sides) / 2);
  sizes.shorter_side = sides[sides.size() / 2];
  return sizes;
}

void SetImageSize(const ImageSizes& sizes, bool on_demand, Experiment::Data* data) {
  data->flip = sizes.colour;
  int64_t side = sizes.shorter_side;
  if (!sizes.equal || side > kLargestKeptSide) {
    side = SideFor(side, kSides);
    ScaleTo(sizes, side, data);
    if (on_demand) {
      data->crop_area = {0.5, 1};
      return;
    }
  }
  data->crop_pad = static_cast<int>(side / 8);
}

void SetMaskedImageSize(const ImageSizes& sizes, Experiment::Data* data) {
  data->flip = sizes.colour;
  const int64_t height = sizes.first[1], width = sizes.first[2];
  int64_t side = sizes.shorter_side;
  if (!sizes.equal || std::max(height, width) > kLargestMaskedSide || height % kMaskedStep != 0 ||
      width % kMaskedStep != 0) {
    side = SideFor(side, kMaskedSides);
    ScaleTo(sizes, side, data);
    data->resize = ResizeMode::kStretch;
  }
  data->crop_pad = static_cast<int>(side / 16);
}

}  // namespace kumo
