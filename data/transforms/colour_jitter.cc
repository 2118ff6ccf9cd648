#include "data/transforms/colour_jitter.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/samples/pixel_kernels.h"
#include "data/transforms/geometry.h"

namespace kumo {
namespace {

constexpr int64_t kHalf = kColourOne / 2;
constexpr int64_t kSixths = 6;  // of the hue circle

uint8_t Level(int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); }

// Weights of red, green and blue in units of 1/65536.
int64_t GreyOf(int64_t red, int64_t green, int64_t blue) {
  return 19595 * red + 38470 * green + 7471 * blue;
}

struct Planes {
  explicit Planes(std::span<uint8_t> pixels)
      : red(pixels.first(pixels.size() / kColours)),
        green(pixels.subspan(red.size(), red.size())),
        blue(pixels.last(red.size())) {}

  int64_t Grey(size_t i) const { return GreyOf(red[i], green[i], blue[i]); }

  std::span<uint8_t> red, green, blue;
};

// factor * level + (1 - factor) * other; `other` is in units of 1/65536.
uint8_t Blend(int64_t level, int64_t other, int64_t factor) {
  const int64_t sum = factor * level * kColourOne + (kColourOne - factor) * other;
  return Level((sum + kColourOne * kHalf) >> 32);
}

// Rounds to the nearest integer.
int64_t Quotient(int64_t n, int64_t d) {
  const int64_t twice = 2 * n + d;
  const int64_t down = twice >= 0 ? 0 : 2 * d - 1;
  return (twice - down) / (2 * d);
}

class ColourJitter final : public Transform {
 public:
  ColourJitter(const Fields& fields, const Experiment::Data& data)
      : pictures_(MovedFields(fields).pictures), data_(data) {}

  void Apply(const SampleKey& key, Sample* sample) const override {
    const ColourDraw draw = DrawColours(data_, key);
    for (const int picture : pictures_) Change(draw, picture, sample);
  }

 private:
  static void Change(const ColourDraw& draw, int picture, Sample* sample) {
    const std::span<const uint8_t> from = sample->pixels(picture);
    const int64_t channels = sample->extents(picture)[0];
    const std::span<std::byte> room = sample->Make(picture, from.size());
    const std::span<uint8_t> pixels(reinterpret_cast<uint8_t*>(room.data()), room.size());
    std::ranges::copy(from, pixels.begin());
    for (const ColourChange change : draw.order) {
      switch (change) {
        case ColourChange::kBrightness:
          ChangeBrightness(pixels, draw.brightness);
          break;
        case ColourChange::kContrast:
          ChangeContrast(channels, pixels, draw.contrast);
          break;
        case ColourChange::kSaturation:
          ChangeSaturation(channels, pixels, draw.saturation);
          break;
        case ColourChange::kHue:
          TurnHue(channels, pixels, draw.turn);
          break;
      }
    }
  }

  const std::vector<int> pictures_;  // fields
  const Experiment::Data data_;
};

}  // namespace

ColourDraw DrawColours(const Experiment::Data& data, const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kColourJitter);
  ColourDraw draw;
  for (size_t i = draw.order.size() - 1; i > 0; --i) {
    std::swap(draw.order[i], draw.order[rng.NextBelow(i + 1)]);
  }
  // One number of the stream each, whatever the range.
  const auto between = [&rng](int64_t low, int64_t high) {
    const auto values = static_cast<uint64_t>(high - low + 1);
    return low + static_cast<int64_t>((rng.NextUint32() * values) >> 32);
  };
  const auto around_one = [&](double setting) {
    const int64_t reach = std::llround(setting * static_cast<double>(kColourOne));
    return between(std::max<int64_t>(0, kColourOne - reach), kColourOne + reach);
  };
  draw.brightness = around_one(data.brightness);
  draw.contrast = around_one(data.contrast);
  draw.saturation = around_one(data.saturation);
  const int64_t reach = std::llround(data.hue * static_cast<double>(kColourOne));
  draw.turn = between(-reach, reach);
  return draw;
}

void ChangeBrightness(std::span<uint8_t> pixels, int64_t factor) {
  if (factor == kColourOne) return;
  for (uint8_t& pixel : pixels) pixel = Blend(pixel, 0, factor);
}

void ChangeContrast(int64_t channels, std::span<uint8_t> pixels, int64_t factor) {
  if (factor == kColourOne || pixels.empty()) return;
  int64_t sum = 0;
  if (channels == kColours) {
    const Planes planes(pixels);
    for (size_t i = 0; i < planes.red.size(); ++i) sum += planes.Grey(i);
  } else {
    for (const uint8_t pixel : pixels) sum += pixel * kColourOne;
  }
  const int64_t count = std::ssize(pixels) / (channels == kColours ? kColours : 1);
  const int64_t mean = Quotient(sum, count);
  for (uint8_t& pixel : pixels) pixel = Blend(pixel, mean, factor);
}

void ChangeSaturation(int64_t channels, std::span<uint8_t> pixels, int64_t factor) {
  if (factor == kColourOne || channels != kColours) return;
  const Planes planes(pixels);
  for (size_t i = 0; i < planes.red.size(); ++i) {
    const int64_t grey = planes.Grey(i);
    for (uint8_t* level : {&planes.red[i], &planes.green[i], &planes.blue[i]}) {
      *level = Blend(*level, grey, factor);
    }
  }
}

// The hue is a position on a circle of six sixths: in each sixth one colour is the largest, another
// the smallest, and the third moves between them (Smith 1978, "Color gamut transform pairs").
void TurnHue(int64_t channels, std::span<uint8_t> pixels, int64_t turn) {
  if (turn == 0 || channels != kColours) return;
  const Planes planes(pixels);
  for (size_t i = 0; i < planes.red.size(); ++i) {
    const int64_t red = planes.red[i], green = planes.green[i], blue = planes.blue[i];
    const int64_t most = std::max({red, green, blue});
    const int64_t least = std::min({red, green, blue});
    const int64_t range = most - least;
    if (range == 0) continue;
    int64_t hue = 0;
    if (most == red) {
      hue = Quotient((green - blue) * kColourOne, range);
    } else if (most == green) {
      hue = 2 * kColourOne + Quotient((blue - red) * kColourOne, range);
    } else {
      hue = 4 * kColourOne + Quotient((red - green) * kColourOne, range);
    }
    // One full turn more than the largest negative turn.
    hue = (hue + kSixths * turn + 2 * kSixths * kColourOne) % (kSixths * kColourOne);
    const int64_t change = (range * (hue % kColourOne) + kHalf) / kColourOne;
    const uint8_t high = Level(most), low = Level(least);
    const uint8_t up = Level(least + change), down = Level(most - change);
    const std::array<std::array<uint8_t, kColours>, kSixths> colours = {{{high, up, low},
                                                                         {down, high, low},
                                                                         {low, high, up},
                                                                         {low, down, high},
                                                                         {up, low, high},
                                                                         {high, low, down}}};
    const auto& colour = colours[static_cast<size_t>(hue / kColourOne)];
    planes.red[i] = colour[0];
    planes.green[i] = colour[1];
    planes.blue[i] = colour[2];
  }
}

Result<std::unique_ptr<const Transform>> MakeColourJitter(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const Experiment::Data& data = request.data;
  const bool asked =
      data.brightness > 0 || data.contrast > 0 || data.saturation > 0 || data.hue > 0;
  if (request.training && asked && FindPicture(request.fields) >= 0) {
    transform = std::make_unique<ColourJitter>(request.fields, data);
  }
  return transform;
}

}  // namespace kumo
