#include <array>
#include <utility>

#include "common/settings/option_value.h"
#include "data/transforms/colour_jitter.h"
#include "data/transforms/crops.h"
#include "data/transforms/cutout.h"
#include "data/transforms/mixup.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

constexpr std::array kKinds = {
    TransformKind{"data.crop_area", MakeRandomResizedCrop},
    TransformKind{"data.shorter_side", MakeCentreCrop},
    TransformKind{"data.crop_pad and data.flip", MakeCropAndFlip},
    TransformKind{"data.brightness, data.contrast, data.saturation and data.hue", MakeColourJitter},
    TransformKind{"data.cutout", MakeCutout},
    TransformKind{"data.mixup", MakeMixup},
};

}  // namespace

std::span<const TransformKind> TransformKinds() { return kKinds; }

Rng StreamOf(const SampleKey& key, TransformStream stream) {
  return {key.seed, RngPurpose::kAugment, static_cast<uint64_t>(key.epoch),
          static_cast<uint64_t>(key.sample), static_cast<uint64_t>(stream)};
}

Fields FieldsAfter(Fields fields, std::span<const std::unique_ptr<const Transform>> transforms) {
  for (const auto& transform : transforms) transform->ChangeFields(&fields);
  return fields;
}

Result<std::vector<int64_t>> WantedExtents(const TransformRequest& request, const Field& field) {
  if (request.data.image_size.empty()) return field.extents;
  KUMO_ASSIGN_OR_RETURN(std::vector<int64_t> wanted, ParseImageExtents(request.data.image_size));
  if (wanted[0] == field.extents[0]) return wanted;
  return FailedPrecondition("data.image_size = " + request.data.image_size + ", but images of " +
                            request.name + " have " + std::to_string(field.extents[0]) +
                            " channels; set the same number of channels");
}

Result<Transforms> MakeTransforms(TransformRequest request) {
  Fields fields = request.fields;
  Transforms transforms;
  for (const TransformKind& kind : kKinds) {
    KUMO_ASSIGN_OR_RETURN(auto transform,
                          kind.make({request.data, fields, request.name, request.training,
                                     request.classes, request.samples}));
    if (transform == nullptr) continue;
    const int image = FindField(fields, kImageField);
    if (image >= 0 && fields[image].type != NumberType::kUint8) {
      return FailedPrecondition(std::string(kind.name) +
                                " requires images in bytes, but those of " + request.name +
                                " are " + NameOf(fields[image].type) + "; keep its default");
    }
    transform->ChangeFields(&fields);
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample) {
  sample->Reset(dataset.fields());
  KUMO_RETURN_IF_ERROR(dataset.ReadKey(key, sample));
  for (size_t t = 0; t < transforms.size(); ++t) {
    transforms[t]->Apply(key, sample);
    const std::optional<int64_t> number = transforms[t]->PartnerOf(key);
    if (!number) continue;
    const SampleKey of_partner = {key.seed, key.epoch, *number};
    Sample& partner = sample->Partner(dataset.fields());
    KUMO_RETURN_IF_ERROR(dataset.ReadKey(of_partner, &partner));
    for (size_t p = 0; p <= t; ++p) transforms[p]->Apply(of_partner, &partner);
    transforms[t]->Mix(key, partner, sample);
  }
  return OkStatus();
}

}  // namespace kumo
