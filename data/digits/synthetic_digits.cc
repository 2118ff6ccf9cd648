#include "data/digits/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "data/digits/digit_strokes.h"

namespace kumo {
namespace {

constexpr float kTwoPi = 2.0f * std::numbers::pi_v<float>;
constexpr int kStepsPerKnot = 5;  // straight pieces between two knots
constexpr int kMaxPoints = 128;   // of all strokes of an image
constexpr float kCentre = 0.5f * (kDigitSide - 1);

struct Point {
  float x;
  float y;
  float pressure;  // of the pen: 1 is ordinary
  bool starts_stroke;
};

// The points of an image's strokes, without allocation.
struct Drawing {
  std::array<Point, kMaxPoints> points;
  int size = 0;

  std::span<Point> span() { return {points.data(), static_cast<size_t>(size)}; }
};

using Canvas = std::array<float, kDigitPixels>;

float Clamp(float value, float low, float high) { return std::min(std::max(value, low), high); }

// Follows a stroke's knots as a cubic Hermite spline with Catmull-Rom tangents, which vanish at
// corners and ends.
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

// The elastic distortion: a smooth random field, the sum of a few long waves.
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

// Stretches, slants and turns.
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

// Turns the digit's own coordinates into pixels: its longer side takes about 20 of them, in the
// middle.
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

// The pen presses harder and softer along its way.
void VaryPressure(Drawing& drawing, Rng& rng) {
  const float depth = 0.25f * rng.NextUniform();
  const float step = rng.NextUniform(0.08f, 0.4f);
  float phase = rng.NextUniform(0.0f, kTwoPi);
  for (Point& point : drawing.span()) {
    point.pressure = 1.0f + depth * std::sin(phase);
    phase += step;
  }
}

// Draws a straight piece of the pen's way: each pixel is as dark as its distance from the piece
// says, from `radius` on paler over `softness` pixels; pieces overlap without getting darker.
void DrawPiece(Point from, Point to, float radius, float softness, Canvas& canvas) {
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

void DrawStrokes(Drawing& drawing, Rng& rng, Canvas& canvas) {
  const float radius = Clamp(1.12f * std::exp(0.24f * rng.NextNormal()), 0.55f, 2.1f);
  const float softness = rng.NextUniform(0.9f, 1.6f);
  const auto points = drawing.span();
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].starts_stroke) continue;
    DrawPiece(points[i - 1], points[i], radius * points[i].pressure, softness, canvas);
  }
}

// Draws, now and then, a mark that does not belong to the digit.
void DrawStrayMark(float sloppiness, Rng& rng, Canvas& canvas) {
  if (rng.NextUniform() > 0.05f * sloppiness) return;
  const Point from{rng.NextUniform(2.0f, 25.0f), rng.NextUniform(2.0f, 25.0f), 1.0f, true};
  const float angle = rng.NextUniform(0.0f, kTwoPi);
  const float length = rng.NextUniform(0.5f, 6.0f);
  const Point to{from.x + length * std::cos(angle), from.y + length * std::sin(angle), 1.0f, false};
  DrawPiece(from, to, rng.NextUniform(0.4f, 1.1f), 1.0f, canvas);
}

// Ink to bytes: an ink of its own darkness, grain where there is ink, a few speckles.
void Develop(const Canvas& canvas, float sloppiness, Rng& rng, std::span<uint8_t> pixels) {
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

}  // namespace

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
  Canvas canvas{};
  DrawStrokes(drawing, rng, canvas);
  DrawStrayMark(sloppiness, rng, canvas);
  Develop(canvas, sloppiness, rng, pixels);
  return static_cast<uint8_t>(digit);
}

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
    helpers.emplace_back(draw, labels.size() * t / threads, labels.size() * (t + 1) / threads);
  }
  draw(0, labels.size() / threads);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace kumo
