#include <array>
#include <utility>

#include "common/settings/option_value.h"
#include "data/transforms/centre_crop.h"
#include "data/transforms/colour_jitter.h"
#include "data/transforms/crop_and_flip.h"
#include "data/transforms/cutout.h"
#include "data/transforms/mixup.h"
#include "data/transforms/random_resized_crop.h"
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
  return FailedPrecondition("data.image_size = " + request.data.image_size + ": images of " +
                            request.name + " have " + std::to_string(field.extents[0]) +
                            " channels; set it to as many");
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
      return FailedPrecondition(std::string(kind.name) + " is for images in bytes; those of " +
                                request.name + " are " + NameOf(fields[image].type) +
                                "; leave it at its default");
    }
    transform->ChangeFields(&fields);
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

}  // namespace kumo
