// Colour jitter: random brightness, contrast, saturation and hue in random order (data.brightness,
// data.contrast, data.saturation, data.hue), by the formulas of torchvision's ColorJitter in
// integer arithmetic: the same bits on every machine, rounded to the nearest level instead of
// truncated. All pictures of a sample get the same draws.
//
// Values and pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "data/transforms/transform.h"

namespace kumo {

enum class ColourChange : uint8_t { kBrightness, kContrast, kSaturation, kHue };

// Fixed-point numbers in units of 1/65536; kColourOne is 1.
inline constexpr int64_t kColourOne = int64_t{1} << 16;
struct ColourDraw {
  std::array<ColourChange, 4> order = {ColourChange::kBrightness, ColourChange::kContrast,
                                       ColourChange::kSaturation, ColourChange::kHue};
  int64_t brightness = kColourOne;  // factors
  int64_t contrast = kColourOne;
  int64_t saturation = kColourOne;
  int64_t turn = 0;  // rotation of the hue; kColourOne is a full turn

  bool operator==(const ColourDraw&) const = default;
};

// Draws one of the 24 orders; factors uniform between 1 - x and 1 + x for a setting x, but at least
// 0; and a turn between -data.hue and data.hue. Changing one setting does not change the draws for
// the others.
ColourDraw DrawColours(const Experiment::Data& data, const SampleKey& key);

// In-place changes. `pixels`: planes of red, green and blue, or one grey plane, which has no
// saturation and no hue. Factors lie in [0, 5 kColourOne], turns in [-kColourOne, kColourOne].
//
// factor * pixel
void ChangeBrightness(std::span<uint8_t> pixels, int64_t factor);
// factor * pixel + (1 - factor) * the mean of the image's grey levels (Y of ITU-R BT.601)
void ChangeContrast(int64_t channels, std::span<uint8_t> pixels, int64_t factor);
// factor * pixel + (1 - factor) * the pixel's grey level
void ChangeSaturation(int64_t channels, std::span<uint8_t> pixels, int64_t factor);
// Rotates the hue of HSV by `turn`; saturation and value stay.
void TurnHue(int64_t channels, std::span<uint8_t> pixels, int64_t turn);

Result<std::unique_ptr<const Transform>> MakeColourJitter(const TransformRequest& request);

}  // namespace kumo
