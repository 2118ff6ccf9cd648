#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <glog/logging.h>

#include "common/settings/option_value.h"
#include "data/transforms/colour_jitter.h"
#include "data/transforms/crops.h"
#include "data/transforms/cutout.h"
#include "data/transforms/difficult.h"
#include "data/transforms/expand.h"
#include "data/transforms/geometry.h"
#include "data/transforms/mixup.h"
#include "data/transforms/object_crop.h"
#include "data/transforms/photometric.h"
#include "data/transforms/resize.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

constexpr std::array kKinds = {
    TransformKind{"data.train_difficult", MakeDropDifficult},
    TransformKind{"data.photometric", MakePhotometric},
    TransformKind{"data.expand", MakeExpand},
    TransformKind{"data.object_crop", MakeObjectCrop},
    TransformKind{"data.crop_area", MakeRandomResizedCrop},
    TransformKind{"data.shorter_side", MakeCentreCrop},
    TransformKind{"data.image_size", MakeResize},
    TransformKind{"data.crop_pad and data.flip", MakeCropAndFlip},
    TransformKind{"data.brightness, data.contrast, data.saturation and data.hue", MakeColourJitter},
    TransformKind{"data.cutout", MakeCutout},
    TransformKind{"data.mixup", MakeMixup},
};

}  // namespace

Rng StreamOf(const SampleKey& key, TransformStream stream) {
  return {key.seed, RngPurpose::kAugment, static_cast<uint64_t>(key.epoch),
          static_cast<uint64_t>(key.sample), static_cast<uint64_t>(stream)};
}

Fields FieldsAfter(Fields fields, std::span<const std::unique_ptr<const Transform>> transforms) {
  for (const auto& transform : transforms) transform->ChangeFields(&fields);
  return fields;
}

Result<PictureSize> WantedSize(const TransformRequest& request) {
  const int picture = FindPicture(request.fields);
  const Field& field = (request.read == nullptr ? request.fields : *request.read)[picture];
  if (request.data.image_size.empty()) {
    if (field.extents[1] > 0) return PictureSize{field.extents[1], field.extents[2]};
    return FailedPrecondition("images of " + request.name +
                              " have sizes of their own; set data.image_size, such as 3x300x300");
  }
  KUMO_ASSIGN_OR_RETURN(const auto wanted, ParseImageExtents(request.data.image_size));
  if (wanted[0] == field.extents[0]) return PictureSize{wanted[1], wanted[2]};
  return FailedPrecondition("data.image_size = " + request.data.image_size + ", but images of " +
                            request.name + " have " + std::to_string(field.extents[0]) +
                            " channels; set the same number of channels");
}

int FindPicture(const Fields& fields) {
  const auto found = std::ranges::find(fields, FieldKind::kPicture, &Field::kind);
  if (found != fields.end()) return static_cast<int>(found - fields.begin());
  const int image = FindField(fields, kImageField);
  return image >= 0 && fields[image].type != NumberType::kInt32 ? image : -1;
}

Status CheckInBytes(const TransformRequest& request) {
  const Field& image = request.fields[FindPicture(request.fields)];
  if (image.kind == FieldKind::kPicture) return OkStatus();
  return FailedPrecondition(std::string(request.settings) +
                            " requires images in bytes, but the images of " + request.name +
                            " are " + NameOf(image.type) + "; keep its default");
}

std::vector<int> FindPictures(const Fields& fields) {
  std::vector<int> pictures;
  for (size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].kind == FieldKind::kPicture) pictures.push_back(static_cast<int>(f));
  }
  if (const int first = FindPicture(fields); pictures.empty() && first >= 0) {
    pictures.push_back(first);
  }
  return pictures;
}

std::vector<uint8_t> MeanColour(const Experiment::Data& data, int64_t channels) {
  constexpr uint8_t kGrey = 128;
  std::vector<uint8_t> colour(channels, kGrey);
  for (size_t c = 0; c < std::min(colour.size(), data.mean.size()); ++c) {
    const double level = std::clamp(data.mean[c] / data.scale, 0.0, 255.0);
    colour[c] = static_cast<uint8_t>(std::lround(level));
  }
  return colour;
}

Result<Transforms> MakeTransforms(TransformRequest request) {
  Fields fields = request.fields;
  Transforms transforms;
  for (const TransformKind& kind : kKinds) {
    const TransformRequest of_kind = {request.data,     fields,          request.name,
                                      request.training, request.classes, request.samples,
                                      &request.fields,  kind.name};
    KUMO_ASSIGN_OR_RETURN(auto transform, kind.make(of_kind));
    if (transform == nullptr) continue;
    CHECK(FindPicture(fields) >= 0) << request.name << ", " << kind.name;
    KUMO_RETURN_IF_ERROR(CheckInBytes(of_kind));
    if (transform->geometric() != nullptr) {
      KUMO_RETURN_IF_ERROR(CheckOneSize(fields, request.name));
    }
    transform->ChangeFields(&fields);
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

namespace {

// Reads a sample, and checks that its pictures can be moved together.
Status ReadAligned(const Dataset& dataset,
                   std::span<const std::unique_ptr<const Transform>> transforms,
                   const SampleKey& key, Sample* sample) {
  KUMO_RETURN_IF_ERROR(dataset.ReadKey(key, sample));
  const bool moves = std::ranges::any_of(
      transforms, [](const auto& transform) { return transform->geometric() != nullptr; });
  return moves ? CheckOneSizeOf(dataset.fields(), *sample, dataset.name()) : OkStatus();
}

}  // namespace

Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample) {
  sample->Reset(dataset.fields());
  KUMO_RETURN_IF_ERROR(ReadAligned(dataset, transforms, key, sample));
  PendingMoves moves(sample);
  for (size_t t = 0; t < transforms.size(); ++t) {
    moves.Apply(*transforms[t], key);
    const std::optional<int64_t> number = transforms[t]->PartnerOf(key);
    if (!number) continue;
    const SampleKey of_partner = {key.seed, key.epoch, *number};
    Sample& partner = sample->Partner(dataset.fields());
    KUMO_RETURN_IF_ERROR(ReadAligned(dataset, transforms, of_partner, &partner));
    PendingMoves moves_of_partner(&partner);
    for (size_t p = 0; p <= t; ++p) moves_of_partner.Apply(*transforms[p], of_partner);
    moves_of_partner.Finish();
    moves.Finish();
    transforms[t]->Mix(key, partner, sample);
  }
  moves.Finish();
  return OkStatus();
}

}  // namespace kumo
