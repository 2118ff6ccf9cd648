// A data set of painted rectangles, to see where transforms take them: two equal pictures, a mask,
// and lists of boxes, classes and difficult flags.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "data/samples/dataset.h"
#include "data/transforms/geometry.h"

namespace kumo::test {

// Positions of the fields.
enum : int { kLeftPicture, kRightPicture, kObjectMask, kObjectBoxes, kObjectClasses, kObjectFlags };

inline constexpr int64_t kMostObjects = 8;
// Level of a painted rectangle on black.
inline constexpr uint8_t kPainted = 200;

class ObjectSet final : public Dataset {
 public:
  struct Object {
    Rectangle place;
    int32_t number = 0;
  };

  // Each sample has a size of its own, and 0 to `most` rectangles.
  ObjectSet(int64_t samples, int64_t most, int64_t least_side = 40) {
    Rng rng(21, RngPurpose::kTest);
    const auto between = [&rng](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng.NextBelow(high - low + 1));
    };
    for (int64_t i = 0; i < samples; ++i) {
      const PictureSize size = {between(least_side, 2 * least_side),
                                between(least_side, 2 * least_side)};
      std::vector<Object> objects(most == 1 ? 1 : between(0, most));
      for (Object& object : objects) {
        object.place.height = between(8, size.height / 2);
        object.place.width = between(8, size.width / 2);
        object.place.top = between(0, size.height - object.place.height);
        object.place.left = between(0, size.width - object.place.width);
        object.number = static_cast<int32_t>(&object - objects.data());
      }
      sizes_.push_back(size);
      objects_.push_back(std::move(objects));
    }
  }

  int64_t size() const override { return std::ssize(sizes_); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return 0; }
  const std::string& name() const override { return name_; }
  const PictureSize& SizeOf(int64_t sample) const { return sizes_[sample]; }
  const std::vector<Object>& ObjectsOf(int64_t sample) const { return objects_[sample]; }
  static Box BoxOf(const Rectangle& r) {
    return {static_cast<float>(r.left), static_cast<float>(r.top),
            static_cast<float>(r.left + r.width), static_cast<float>(r.top + r.height)};
  }

  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const auto [height, width] = sizes_[key.sample];
    const std::vector<Object>& objects = objects_[key.sample];
    std::vector<uint8_t> painted(height * width), mask(height * width);
    std::vector<Box> boxes;
    std::vector<int32_t> classes;
    std::vector<uint8_t> flags;
    for (const Object& object : objects) {
      const Rectangle& r = object.place;
      for (int64_t y = r.top; y < r.top + r.height; ++y) {
        std::fill_n(painted.begin() + y * width + r.left, r.width, kPainted);
        std::fill_n(mask.begin() + y * width + r.left, r.width, uint8_t{1});
      }
      boxes.push_back(BoxOf(r));
      classes.push_back(object.number);
      flags.push_back(static_cast<uint8_t>(object.number % 2));
    }
    for (const int field : {kLeftPicture, kRightPicture}) {
      const std::span<uint8_t> pixels =
          sample->MakePixels(field, std::array{int64_t{3}, height, width});
      for (int64_t c = 0; c < 3; ++c) {
        std::ranges::copy(painted, pixels.begin() + c * height * width);
      }
    }
    std::ranges::copy(mask, sample->MakePixels(kObjectMask, std::array{height, width}).begin());
    Fill(kObjectBoxes, std::as_bytes(std::span(boxes)), {std::ssize(boxes), 4}, sample);
    Fill(kObjectClasses, std::as_bytes(std::span(classes)), {std::ssize(classes)}, sample);
    Fill(kObjectFlags, std::as_bytes(std::span(flags)), {std::ssize(flags)}, sample);
    return OkStatus();
  }

 private:
  static void Fill(int field, std::span<const std::byte> bytes, const std::vector<int64_t>& extents,
                   Sample* sample) {
    std::ranges::copy(bytes, sample->Make(field, bytes.size()).begin());
    sample->SetExtents(field, extents);
  }

  const std::string name_ = "objects";
  const Fields fields_ = {
      {"left", NumberType::kUint8, {3, 0, 0}, FieldKind::kPicture},
      {"right", NumberType::kUint8, {3, 0, 0}, FieldKind::kPicture},
      {"mask", NumberType::kUint8, {0, 0}, FieldKind::kMask},
      {kBoxesField, NumberType::kFloat32, {kMostObjects, 4}, FieldKind::kBoxes, true},
      {kClassesField, NumberType::kInt32, {kMostObjects}, FieldKind::kNumbers, true},
      {kDifficultField, NumberType::kUint8, {kMostObjects}, FieldKind::kNumbers, true}};
  std::vector<PictureSize> sizes_;
  std::vector<std::vector<Object>> objects_;
};

template <typename T>
std::vector<T> ValuesOf(const Sample& sample, int field) {
  std::vector<T> values(sample.field(field).size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), sample.field(field).data(), values.size() * sizeof(T));
  return values;
}

// The rectangle around all pixels of a plane of at least `level`; all 0 if there are none.
inline Rectangle AroundPainted(std::span<const uint8_t> plane, const PictureSize& size, int level) {
  int64_t top = size.height, left = size.width, bottom = 0, right = 0;
  for (int64_t y = 0; y < size.height; ++y) {
    for (int64_t x = 0; x < size.width; ++x) {
      if (plane[y * size.width + x] < level) continue;
      top = std::min(top, y);
      left = std::min(left, x);
      bottom = std::max(bottom, y + 1);
      right = std::max(right, x + 1);
    }
  }
  if (bottom == 0) return {};
  return {top, left, bottom - top, right - left};
}

}  // namespace kumo::test
