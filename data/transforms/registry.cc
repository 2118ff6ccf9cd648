#include <array>

#include "data/transforms/crop_and_flip.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

constexpr std::array kKinds = {
    TransformKind{"crop and flip", MakeCropAndFlip},
};

}  // namespace

std::span<const TransformKind> TransformKinds() { return kKinds; }

}  // namespace kumo
