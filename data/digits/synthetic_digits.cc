#include "data/digits/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "common/base/thread.h"

namespace kumo {

namespace {

// A point on the pen's path: (0, 0) is the digit's upper left, (1, 1) its lower right corner. The
// path is smooth at a knot unless it is a corner.
struct Knot {
  float x;
  float y;
  bool corner = false;
};

using Stroke = std::span<const Knot>;

// The strokes of one style of a digit.
using DigitStyle = std::span<const Stroke>;

constexpr bool kCorner = true;

constexpr Knot kZeroRound[] = {{.55f, .02f}, {.28f, .12f}, {.14f, .48f}, {.24f, .86f}, {.50f, .98f},
                               {.76f, .86f}, {.86f, .50f}, {.74f, .12f}, {.50f, .02f}};
constexpr Knot kZeroCrossed[] = {{.66f, .12f}, {.44f, .02f}, {.24f, .22f}, {.20f, .60f},
                                 {.36f, .95f}, {.62f, .92f}, {.78f, .58f}, {.72f, .20f},
                                 {.52f, .06f}, {.34f, .10f}};
constexpr Stroke kZeroStrokes[] = {kZeroRound, kZeroCrossed};
constexpr DigitStyle kZero[] = {{&kZeroStrokes[0], 1}, {&kZeroStrokes[1], 1}};

constexpr Knot kOneStem[] = {{.50f, .00f, kCorner}, {.50f, .50f}, {.50f, 1.0f, kCorner}};
constexpr Knot kOneFlag[] = {{.30f, .22f, kCorner}, {.53f, .00f, kCorner}, {.52f, 1.0f, kCorner}};
constexpr Knot kOneBase[] = {{.28f, 1.0f, kCorner}, {.76f, .99f, kCorner}};
constexpr Stroke kOneStrokes[] = {kOneStem, kOneFlag, kOneBase};
// The bare stem is by far the most frequent style.
constexpr DigitStyle kOne[] = {{&kOneStrokes[0], 1},
                               {&kOneStrokes[0], 1},
                               {&kOneStrokes[0], 1},
                               {&kOneStrokes[1], 1},
                               {&kOneStrokes[1], 2}};

constexpr Knot kTwoPlain[] = {{.18f, .25f},          {.32f, .05f},         {.60f, .02f},
                              {.78f, .22f},          {.66f, .50f},         {.40f, .75f},
                              {.15f, .97f, kCorner}, {.85f, .95f, kCorner}};
constexpr Knot kTwoLooped[] = {{.20f, .22f}, {.42f, .02f}, {.74f, .14f}, {.72f, .42f},
                               {.46f, .76f}, {.22f, .95f}, {.12f, .86f}, {.28f, .78f},
                               {.56f, .90f}, {.88f, .96f}};
constexpr Stroke kTwoStrokes[] = {kTwoPlain, kTwoLooped};
constexpr DigitStyle kTwo[] = {{&kTwoStrokes[0], 1}, {&kTwoStrokes[1], 1}};

constexpr Knot kThreeRound[] = {{.20f, .15f},          {.50f, .00f}, {.78f, .18f}, {.66f, .40f},
                                {.42f, .48f, kCorner}, {.70f, .56f}, {.84f, .76f}, {.62f, .97f},
                                {.35f, .98f},          {.15f, .85f}};
constexpr Knot kThreeFlat[] = {{.18f, .04f, kCorner}, {.78f, .04f, kCorner}, {.45f, .42f, kCorner},
                               {.72f, .50f},          {.82f, .74f},          {.60f, .97f},
                               {.30f, .98f},          {.14f, .86f}};
constexpr Stroke kThreeStrokes[] = {kThreeRound, kThreeFlat};
constexpr DigitStyle kThree[] = {
    {&kThreeStrokes[0], 1}, {&kThreeStrokes[0], 1}, {&kThreeStrokes[1], 1}};

constexpr Knot kFourOpen[] = {
    {.25f, .05f, kCorner}, {.20f, .30f}, {.16f, .55f, kCorner}, {.84f, .52f, kCorner}};
constexpr Knot kFourOpenStem[] = {{.72f, .02f, kCorner}, {.68f, .50f}, {.62f, 1.0f, kCorner}};
constexpr Knot kFourClosed[] = {
    {.64f, .00f, kCorner}, {.12f, .62f, kCorner}, {.90f, .60f, kCorner}};
constexpr Knot kFourClosedStem[] = {{.64f, .00f, kCorner}, {.63f, .50f}, {.62f, 1.0f, kCorner}};
constexpr Knot kFourRound[] = {
    {.18f, .05f}, {.16f, .35f}, {.30f, .52f}, {.58f, .48f}, {.76f, .30f}};
constexpr Knot kFourRoundStem[] = {{.80f, .00f, kCorner}, {.74f, .50f}, {.66f, 1.0f, kCorner}};
constexpr Stroke kFourStrokes[] = {kFourOpen,       kFourOpenStem, kFourClosed,
                                   kFourClosedStem, kFourRound,    kFourRoundStem};
constexpr DigitStyle kFour[] = {
    {&kFourStrokes[0], 2}, {&kFourStrokes[2], 2}, {&kFourStrokes[4], 2}};

constexpr Knot kFiveOneStroke[] = {
    {.80f, .04f, kCorner}, {.30f, .04f, kCorner}, {.24f, .44f, kCorner}, {.55f, .38f},
    {.82f, .60f},          {.72f, .90f},          {.42f, 1.0f},          {.15f, .88f}};
constexpr Knot kFiveBody[] = {{.32f, .05f, kCorner}, {.25f, .42f, kCorner}, {.55f, .40f},
                              {.80f, .62f},          {.66f, .92f},          {.38f, .98f},
                              {.14f, .86f}};
constexpr Knot kFiveRoof[] = {{.32f, .06f, kCorner}, {.84f, .02f, kCorner}};
constexpr Stroke kFiveStrokes[] = {kFiveOneStroke, kFiveBody, kFiveRoof};
constexpr DigitStyle kFive[] = {{&kFiveStrokes[0], 1}, {&kFiveStrokes[1], 2}};

constexpr Knot kSixRound[] = {{.70f, .02f}, {.42f, .20f}, {.22f, .52f}, {.20f, .80f}, {.42f, .99f},
                              {.70f, .90f}, {.76f, .66f}, {.56f, .52f}, {.34f, .60f}, {.22f, .80f}};
constexpr Knot kSixSteep[] = {{.48f, .00f}, {.28f, .35f}, {.18f, .72f}, {.38f, .98f},
                              {.66f, .90f}, {.70f, .68f}, {.46f, .58f}, {.22f, .76f}};
constexpr Stroke kSixStrokes[] = {kSixRound, kSixSteep};
constexpr DigitStyle kSix[] = {{&kSixStrokes[0], 1}, {&kSixStrokes[1], 1}};

constexpr Knot kSevenPlain[] = {
    {.15f, .05f, kCorner}, {.82f, .04f, kCorner}, {.60f, .45f}, {.42f, 1.0f, kCorner}};
constexpr Knot kSevenBar[] = {{.28f, .50f, kCorner}, {.80f, .46f, kCorner}};
constexpr Knot kSevenSerif[] = {{.14f, .20f, kCorner},
                                {.18f, .04f, kCorner},
                                {.84f, .04f, kCorner},
                                {.54f, .58f},
                                {.46f, 1.0f}};
constexpr Stroke kSevenStrokes[] = {kSevenSerif, kSevenPlain, kSevenBar};
constexpr DigitStyle kSeven[] = {
    {&kSevenStrokes[1], 1}, {&kSevenStrokes[1], 1}, {&kSevenStrokes[1], 2}, {&kSevenStrokes[0], 1}};

constexpr Knot kEightOneStroke[] = {{.70f, .12f}, {.44f, .02f}, {.24f, .20f}, {.44f, .44f},
                                    {.72f, .66f}, {.70f, .92f}, {.42f, .99f}, {.22f, .84f},
                                    {.30f, .62f}, {.56f, .44f}, {.76f, .22f}, {.66f, .08f}};
constexpr Knot kEightUpper[] = {{.50f, .47f}, {.26f, .30f}, {.34f, .06f},
                                {.66f, .06f}, {.74f, .30f}, {.50f, .47f}};
constexpr Knot kEightLower[] = {{.50f, .47f}, {.20f, .66f}, {.28f, .95f},
                                {.70f, .96f}, {.80f, .68f}, {.50f, .47f}};
constexpr Stroke kEightStrokes[] = {kEightOneStroke, kEightUpper, kEightLower};
constexpr DigitStyle kEight[] = {
    {&kEightStrokes[0], 1}, {&kEightStrokes[0], 1}, {&kEightStrokes[1], 2}};

constexpr Knot kNineStraight[] = {{.74f, .20f},          {.50f, .02f}, {.24f, .16f},
                                  {.22f, .40f},          {.46f, .52f}, {.70f, .36f},
                                  {.77f, .12f, kCorner}, {.73f, .50f}, {.66f, 1.0f, kCorner}};
constexpr Knot kNineHooked[] = {{.74f, .22f}, {.52f, .02f}, {.24f, .18f},
                                {.26f, .44f}, {.52f, .50f}, {.75f, .22f, kCorner},
                                {.76f, .60f}, {.62f, .92f}, {.30f, .96f}};
constexpr Stroke kNineStrokes[] = {kNineStraight, kNineHooked};
constexpr DigitStyle kNine[] = {
    {&kNineStrokes[0], 1}, {&kNineStrokes[0], 1}, {&kNineStrokes[1], 1}};

// The handwriting styles of `digit`, none empty. Requires 0 <= digit <= 9.
std::span<const DigitStyle> DigitStyles(int digit) {
  switch (digit) {
    case 0:
      return kZero;
    case 1:
      return kOne;
    case 2:
      return kTwo;
    case 3:
      return kThree;
    case 4:
      return kFour;
    case 5:
      return kFive;
    case 6:
      return kSix;
    case 7:
      return kSeven;
    case 8:
      return kEight;
    case 9:
      return kNine;
  }
  LOG(FATAL) << "no digit: " << digit;
}

constexpr float kTwoPi = 2.0f * std::numbers::pi_v<float>;
constexpr int kStepsPerKnot = 5;  // line segments between two knots
constexpr int kMaxPoints = 128;   // of all strokes of an image
constexpr float kCentre = 0.5f * (kDigitSide - 1);

struct Point {
  float x;
  float y;
  float pressure;  // of the pen; 1 is normal
  bool starts_stroke;
};

// Points of an image's strokes, without allocation.
struct Drawing {
  std::array<Point, kMaxPoints> points;
  int size = 0;

  std::span<Point> span() { return {points.data(), static_cast<size_t>(size)}; }
};

using Ink = std::array<float, kDigitPixels>;

float Clamp(float value, float low, float high) { return std::min(std::max(value, low), high); }

// Follows a stroke's knots as a cubic Hermite spline with Catmull-Rom tangents; tangents are zero
// at corners and ends.
void TraceStroke(std::span<const Knot> knots, Drawing& drawing) {
  const int count = static_cast<int>(knots.size());
  const auto tangent = [&](int i, float Knot::*axis) {
    if (i == 0 || i == count - 1 || knots[i].corner) return 0.0f;
    return 0.5f * (knots[i + 1].*axis - knots[i - 1].*axis);
  };
  const auto at = [&](int i, float t, float Knot::*axis) {
    const float t2 = t * t;
    const float t3 = t2 * t;
    return (2 * t3 - 3 * t2 + 1) * knots[i].*axis + (t3 - 2 * t2 + t) * tangent(i, axis) +
           (3 * t2 - 2 * t3) * knots[i + 1].*axis + (t3 - t2) * tangent(i + 1, axis);
  };
  CHECK_LE(drawing.size + (count - 1) * kStepsPerKnot + 1, kMaxPoints);
  for (int i = 0; i + 1 < count; ++i) {
    for (int step = i == 0 ? 0 : 1; step <= kStepsPerKnot; ++step) {
      const float t = static_cast<float>(step) / kStepsPerKnot;
      drawing.points[drawing.size++] = {at(i, t, &Knot::x), at(i, t, &Knot::y), 1.0f,
                                        i == 0 && step == 0};
    }
  }
}

Drawing TraceDigit(int digit, float sloppiness, Rng& rng) {
  const auto styles = DigitStyles(digit);
  const DigitStyle& style = styles[rng.NextBelow(styles.size())];
  Drawing drawing;
  std::array<Knot, kMaxPoints / kStepsPerKnot> knots;
  const float jitter = 0.032f * sloppiness;
  for (const Stroke& stroke : style) {
    CHECK_LE(stroke.size(), knots.size());
    for (size_t i = 0; i < stroke.size(); ++i) {
      knots[i] = {stroke[i].x + jitter * rng.NextNormal(), stroke[i].y + jitter * rng.NextNormal(),
                  stroke[i].corner};
    }
    TraceStroke(std::span(knots).first(stroke.size()), drawing);
  }
  return drawing;
}

// Elastic distortion: a smooth random field, the sum of a few long waves.
void Bend(Drawing& drawing, float sloppiness, Rng& rng) {
  for (int wave = 0; wave < 3; ++wave) {
    const float direction = rng.NextUniform(0.0f, kTwoPi);
    const float frequency = rng.NextUniform(2.0f, 7.0f);
    const float wave_x = frequency * std::cos(direction);
    const float wave_y = frequency * std::sin(direction);
    const float phase = rng.NextUniform(0.0f, kTwoPi);
    const float push_x = 0.028f * sloppiness * rng.NextNormal();
    const float push_y = 0.028f * sloppiness * rng.NextNormal();
    for (Point& point : drawing.span()) {
      const float height = std::sin(wave_x * point.x + wave_y * point.y + phase);
      point.x += push_x * height;
      point.y += push_y * height;
    }
  }
}

// Stretch, slant and rotation.
void Transform(Drawing& drawing, float sloppiness, Rng& rng) {
  const float width = 0.8f * std::exp(0.16f * rng.NextNormal());
  const float slant = 0.22f * rng.NextNormal();
  const float angle = Clamp(0.10f * sloppiness * rng.NextNormal(), -0.5f, 0.5f);
  const float cosine = std::cos(angle);
  const float sine = std::sin(angle);
  for (Point& point : drawing.span()) {
    const float y = point.y - 0.5f;
    const float x = width * (point.x - 0.5f) - slant * y;
    point.x = cosine * x - sine * y;
    point.y = sine * x + cosine * y;
  }
}

// Converts the digit's coordinates to pixels: its longer side takes about 20 pixels, centred.
void FitToCanvas(Drawing& drawing, Rng& rng) {
  Point low = drawing.points[0];
  Point high = low;
  for (const Point& point : drawing.span()) {
    low.x = std::min(low.x, point.x);
    low.y = std::min(low.y, point.y);
    high.x = std::max(high.x, point.x);
    high.y = std::max(high.y, point.y);
  }
  const float extent = std::max({high.x - low.x, high.y - low.y, 0.1f});
  const float scale = rng.NextUniform(15.5f, 19.5f) / extent;
  const float x = kCentre + Clamp(0.9f * rng.NextNormal(), -2.5f, 2.5f);
  const float y = kCentre + Clamp(0.9f * rng.NextNormal(), -2.5f, 2.5f);
  for (Point& point : drawing.span()) {
    point.x = x + scale * (point.x - 0.5f * (low.x + high.x));
    point.y = y + scale * (point.y - 0.5f * (low.y + high.y));
  }
}

// Varies the pen's pressure along its path.
void VaryPressure(Drawing& drawing, Rng& rng) {
  const float depth = 0.25f * rng.NextUniform();
  const float step = rng.NextUniform(0.08f, 0.4f);
  float phase = rng.NextUniform(0.0f, kTwoPi);
  for (Point& point : drawing.span()) {
    point.pressure = 1.0f + depth * std::sin(phase);
    phase += step;
  }
}

// Draws a line segment: a pixel's darkness depends on its distance from the segment and fades over
// `softness` pixels beyond `radius`; overlaps do not get darker.
void DrawPiece(Point from, Point to, float radius, float softness, Ink& canvas) {
  const float reach = radius + softness;
  const int first_row = std::max(0, static_cast<int>(std::floor(std::min(from.y, to.y) - reach)));
  const int last_row =
      std::min(kDigitSide - 1, static_cast<int>(std::ceil(std::max(from.y, to.y) + reach)));
  const float dx = to.x - from.x;
  const float dy = to.y - from.y;
  const float inverse_length2 = 1.0f / std::max(dx * dx + dy * dy, 1e-6f);
  const float slope = 1.0f / softness;
  for (int row = first_row; row <= last_row; ++row) {
    float* const pixels = canvas.data() + row * kDigitSide;
    const float y = static_cast<float>(row) - from.y;
    for (int column = 0; column < kDigitSide; ++column) {
      const float x = static_cast<float>(column) - from.x;
      const float along = Clamp((x * dx + y * dy) * inverse_length2, 0.0f, 1.0f);
      const float off_x = x - along * dx;
      const float off_y = y - along * dy;
      const float distance = std::sqrt(off_x * off_x + off_y * off_y);
      const float ink = Clamp(0.5f + (radius - distance) * slope, 0.0f, 1.0f);
      pixels[column] = std::max(pixels[column], ink);
    }
  }
}

void DrawStrokes(Drawing& drawing, Rng& rng, Ink& canvas) {
  const float radius = Clamp(1.12f * std::exp(0.24f * rng.NextNormal()), 0.55f, 2.1f);
  const float softness = rng.NextUniform(0.9f, 1.6f);
  const auto points = drawing.span();
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].starts_stroke) continue;
    DrawPiece(points[i - 1], points[i], radius * points[i].pressure, softness, canvas);
  }
}

// Occasionally draws a stray mark.
void DrawStrayMark(float sloppiness, Rng& rng, Ink& canvas) {
  if (rng.NextUniform() > 0.05f * sloppiness) return;
  const Point from{rng.NextUniform(2.0f, 25.0f), rng.NextUniform(2.0f, 25.0f), 1.0f, true};
  const float angle = rng.NextUniform(0.0f, kTwoPi);
  const float length = rng.NextUniform(0.5f, 6.0f);
  const Point to{from.x + length * std::cos(angle), from.y + length * std::sin(angle), 1.0f, false};
  DrawPiece(from, to, rng.NextUniform(0.4f, 1.1f), 1.0f, canvas);
}

// Converts ink to bytes with a random darkness, grain in the ink and a few speckles.
void Develop(const Ink& canvas, float sloppiness, Rng& rng, std::span<uint8_t> pixels) {
  const float darkness = rng.NextUniform(0.80f, 1.05f);
  const float grain = 0.16f * rng.NextUniform();
  for (int i = 0; i < kDigitPixels; ++i) {
    float ink = canvas[i];
    if (ink > 0.0f) ink *= darkness + grain * (rng.NextUniform() - 0.5f);
    pixels[i] = static_cast<uint8_t>(255.0f * Clamp(ink, 0.0f, 1.0f) + 0.5f);
  }
  const int speckles = static_cast<int>(4.0f * sloppiness * rng.NextUniform());
  for (int k = 0; k < speckles; ++k) {
    uint8_t& pixel = pixels[rng.NextBelow(kDigitPixels)];
    pixel = static_cast<uint8_t>(std::min<uint64_t>(255, pixel / 2 + rng.NextBelow(160)));
  }
}

// Draws one image and returns its digit.
uint8_t DrawDigit(uint64_t seed, DigitSplit split, int64_t index, std::span<uint8_t> pixels) {
  CHECK_EQ(pixels.size(), static_cast<size_t>(kDigitPixels));
  Rng rng(seed, RngPurpose::kSynthetic, static_cast<uint64_t>(split), static_cast<uint64_t>(index));
  const int digit = static_cast<int>(rng.NextBelow(10));
  // 1 on average; one hand in twenty is twice as sloppy.
  const float sloppiness = Clamp(0.6f + 0.5f * std::abs(rng.NextNormal()), 0.6f, 2.2f);
  Drawing drawing = TraceDigit(digit, sloppiness, rng);
  Bend(drawing, sloppiness, rng);
  Transform(drawing, sloppiness, rng);
  FitToCanvas(drawing, rng);
  VaryPressure(drawing, rng);
  Ink canvas{};
  DrawStrokes(drawing, rng, canvas);
  DrawStrayMark(sloppiness, rng, canvas);
  Develop(canvas, sloppiness, rng, pixels);
  return static_cast<uint8_t>(digit);
}

}  // namespace

void DrawDigits(uint64_t seed, DigitSplit split, int64_t first, int threads,
                std::span<uint8_t> pixels, std::span<uint8_t> labels) {
  CHECK_GE(threads, 1);
  CHECK_EQ(pixels.size(), labels.size() * kDigitPixels);
  const auto draw = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      labels[i] = DrawDigit(seed, split, first + static_cast<int64_t>(i),
                            pixels.subspan(i * kDigitPixels, kDigitPixels));
    }
  };
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) {
    const size_t begin = labels.size() * t / threads, end = labels.size() * (t + 1) / threads;
    helpers.push_back(StartThread([&draw, begin, end] { draw(begin, end); }));
  }
  draw(0, labels.size() / threads);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace kumo
