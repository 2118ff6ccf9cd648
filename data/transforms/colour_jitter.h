// Random brightness, contrast, saturation and hue, one after the other in a random order
// (data.brightness, data.contrast, data.saturation, data.hue), by torchvision's formulas
// (ColorJitter), in whole numbers: the same bits on every machine, rounded to the nearest level
// where torchvision drops fractions.
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

// In units of 1/65536, in which 1 is kColourOne.
inline constexpr int64_t kColourOne = int64_t{1} << 16;
struct ColourDraw {
  std::array<ColourChange, 4> order = {ColourChange::kBrightness, ColourChange::kContrast,
                                       ColourChange::kSaturation, ColourChange::kHue};
  int64_t brightness = kColourOne;  // factors
  int64_t contrast = kColourOne;
  int64_t saturation = kColourOne;
  int64_t turn = 0;  // of the hue; kColourOne is once around

  bool operator==(const ColourDraw&) const = default;
};

// The order is any of the 24; a factor is uniform between 1 - x and 1 + x for a setting x, but not
// below 0, the turn between -data.hue and data.hue. One setting changes nothing of what is drawn
// for the others.
ColourDraw DrawColours(const Experiment::Data& data, const SampleKey& key);

// Each in place. `pixels`: planes of red, green and blue, or one of grey, which has no saturation
// and no hue. Factors lie in [0, 5 kColourOne], turns in [-kColourOne, kColourOne].
//
// factor * pixel
void ChangeBrightness(std::span<uint8_t> pixels, int64_t factor);
// factor * pixel + (1 - factor) * the mean of the image's grey levels (Y of ITU-R BT.601)
void ChangeContrast(int64_t channels, std::span<uint8_t> pixels, int64_t factor);
// factor * pixel + (1 - factor) * the pixel's grey level
void ChangeSaturation(int64_t channels, std::span<uint8_t> pixels, int64_t factor);
// The hue of HSV moves on by `turn`; saturation and value stay.
void TurnHue(int64_t channels, std::span<uint8_t> pixels, int64_t turn);

Result<std::unique_ptr<const Transform>> MakeColourJitter(const TransformRequest& request);

}  // namespace kumo
