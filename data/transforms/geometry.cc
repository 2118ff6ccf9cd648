// Pictures move late, boxes at once. A transform's map may depend on the boxes, so MoveLists
// applies each map to the lists when it is known. Pixels wait (PendingMoves): consecutive maps are
// composed into one, and each picture is read once. A crop, a flip and a scaling are then one pass.
//
// Composed merges two maps only if the bits are those of both, one after the other: the first must
// not scale, the second must stay inside the first's picture, and a mirrored picture is not scaled
// (a mirror and a resampling do not commute in the last bit). A second map that only mirrors always
// fits. Otherwise the first map is carried out.
//
//   box:      x' = (x - left) * width' / width, in double, clipped to the picture; mirrored:
//             x'' = width' - x', and left and right change places
//   picture:  resampled (resample.h), or copied row by row if the size stays
//   mask:     the nearest pixel; kIgnoredClass outside, since a mean of two classes is no class
//
// An object is dropped if the centre of its box lies outside the rectangle.
#include "data/transforms/geometry.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <glog/logging.h>

namespace kumo {
namespace {

bool Contains(const PictureSize& size, const Rectangle& part) {
  return part.top >= 0 && part.left >= 0 && part.top + part.height <= size.height &&
         part.left + part.width <= size.width;
}

PictureSize SizeOf(std::span<const int64_t> extents, FieldKind kind) {
  return kind == FieldKind::kMask ? PictureSize{extents[0], extents[1]}
                                  : PictureSize{extents[1], extents[2]};
}

// The first field that differs in height or width from the first picture; -1: none.
template <typename ExtentsOf>
int FindOtherSize(const Fields& fields, const ExtentsOf& extents_of) {
  const MovedFields moved(fields);
  if (moved.pictures.empty()) return -1;
  const PictureSize size = SizeOf(extents_of(moved.pictures[0]), FieldKind::kPicture);
  for (const std::vector<int>& some : {moved.pictures, moved.masks}) {
    for (const int f : some) {
      if (SizeOf(extents_of(f), fields[f].kind) != size) return f;
    }
  }
  return -1;
}

template <typename ExtentsOf>
std::string TextOfSizes(const Fields& fields, int other, const ExtentsOf& extents_of) {
  const int first = MovedFields(fields).pictures[0];
  return fields[first].name + " is " + ExtentsText(extents_of(first)) + ", but " +
         fields[other].name + " is " + ExtentsText(extents_of(other)) +
         "; pictures and masks of a sample must have one height and width to be transformed";
}

}  // namespace

std::optional<GeometricMap> Composed(const GeometricMap& first, const GeometricMap& second) {
  const Rectangle whole = {0, 0, first.size.height, first.size.width};
  if (second.from == whole && !second.scales()) {
    GeometricMap map = first;
    map.mirrored = first.mirrored != second.mirrored;
    return map;
  }
  // A mirrored picture, resampled, differs in the last bit from a resampled picture, mirrored.
  if (first.scales() || (first.mirrored && second.scales()) || !Contains(first.size, second.from)) {
    return std::nullopt;
  }
  GeometricMap map = second;
  map.from.top = first.from.top + second.from.top;
  map.from.left =
      first.from.left +
      (first.mirrored ? first.size.width - second.from.left - second.from.width : second.from.left);
  map.mirrored = first.mirrored != second.mirrored;
  map.outside = first.outside;
  return map;
}

bool Keeps(const Rectangle& from, const Box& box) {
  const double x = (double{box.left} + double{box.right}) / 2;
  const double y = (double{box.top} + double{box.bottom}) / 2;
  return x > static_cast<double>(from.left) && x < static_cast<double>(from.left + from.width) &&
         y > static_cast<double>(from.top) && y < static_cast<double>(from.top + from.height);
}

Box MovedBox(const GeometricMap& map, const Box& box) {
  const auto moved = [](float place, int64_t first, int64_t from, int64_t to) {
    const auto extent = static_cast<double>(to);
    const double scaled =
        (double{place} - static_cast<double>(first)) * extent / static_cast<double>(from);
    return std::clamp(scaled, 0.0, extent);
  };
  const auto across = [&](float x) {
    return moved(x, map.from.left, map.from.width, map.size.width);
  };
  const auto down = [&](float y) {
    return static_cast<float>(moved(y, map.from.top, map.from.height, map.size.height));
  };
  double left = across(box.left), right = across(box.right);
  if (map.mirrored) {
    left = static_cast<double>(map.size.width) - left;
    right = static_cast<double>(map.size.width) - right;
    std::swap(left, right);
  }
  return {static_cast<float>(left), down(box.top), static_cast<float>(right), down(box.bottom)};
}

// Row by row: a row is a part outside, a piece of the picture, and a part outside.
void MovePicture(const GeometricMap& map, int64_t channels, const PictureSize& size,
                 std::span<const uint8_t> from, Resampler* resampler, std::span<uint8_t> to) {
  const ResampleOptions options = {map.interpolation, map.mirrored, map.outside};
  if (map.scales()) {
    resampler->Resample(from, channels, size.height, size.width, map.from, map.size.height,
                        map.size.width, to, options);
    return;
  }
  const auto [height, width] = map.size;
  CHECK_EQ(std::ssize(from), channels * size.height * size.width);
  CHECK_EQ(std::ssize(to), channels * height * width);
  const int64_t first_row = std::clamp<int64_t>(-map.from.top, 0, height);
  const int64_t end_row = std::clamp(size.height - map.from.top, first_row, height);
  const int64_t first = std::clamp<int64_t>(-map.from.left, 0, width);
  const int64_t end = std::clamp(size.width - map.from.left, first, width);
  const bool inside = first == 0 && end == width && first_row == 0 && end_row == height;
  for (int64_t c = 0; c < channels; ++c) {
    if (!inside) {
      std::ranges::fill(to.subspan(c * height * width, height * width), options.LevelOutside(c));
    }
    for (int64_t y = first_row; y < end_row; ++y) {
      uint8_t* const row = to.data() + (c * height + y) * width;
      const uint8_t* const source =
          from.data() + ((c * size.height + map.from.top + y) * size.width + map.from.left + first);
      if (map.mirrored) {
        std::reverse_copy(source, source + (end - first), row + width - end);
      } else {
        std::copy(source, source + (end - first), row + first);
      }
    }
  }
}

void MoveMask(const GeometricMap& map, const PictureSize& size, std::span<const uint8_t> from,
              std::span<uint8_t> to) {
  const auto [height, width] = map.size;
  CHECK_EQ(std::ssize(from), size.height * size.width);
  CHECK_EQ(std::ssize(to), height * width);
  std::vector<int64_t> columns(width);  // -1: outside
  for (int64_t x = 0; x < width; ++x) {
    const int64_t column = map.from.left + NearestPixel(x, map.from.width, width);
    columns[map.mirrored ? width - 1 - x : x] = column >= 0 && column < size.width ? column : -1;
  }
  for (int64_t y = 0; y < height; ++y) {
    const int64_t row = map.from.top + NearestPixel(y, map.from.height, height);
    const std::span<uint8_t> out = to.subspan(y * width, width);
    if (row < 0 || row >= size.height) {
      std::ranges::fill(out, kIgnoredClass);
      continue;
    }
    const std::span<const uint8_t> source = from.subspan(row * size.width, size.width);
    for (int64_t x = 0; x < width; ++x) {
      out[x] = columns[x] < 0 ? kIgnoredClass : source[columns[x]];
    }
  }
}

MovedFields::MovedFields(const Fields& fields) {
  for (int f = 0; f < std::ssize(fields); ++f) {
    if (fields[f].kind == FieldKind::kPicture) pictures.push_back(f);
    if (fields[f].kind == FieldKind::kMask) masks.push_back(f);
    if (fields[f].kind == FieldKind::kBoxes) boxes = f;
    if (fields[f].list) lists.push_back(f);
  }
}

Status CheckOneSize(const Fields& fields, const std::string& name) {
  const auto extents_of = [&](int f) { return std::span<const int64_t>(fields[f].extents); };
  const int other = FindOtherSize(fields, extents_of);
  if (other < 0) return OkStatus();
  return FailedPrecondition(name + ": " + TextOfSizes(fields, other, extents_of));
}

Status CheckOneSizeOf(const Fields& fields, const Sample& sample, const std::string& name) {
  const auto extents_of = [&](int f) { return sample.extents(f); };
  const int other = FindOtherSize(fields, extents_of);
  if (other < 0) return OkStatus();
  return DataLoss(name + ": " + TextOfSizes(fields, other, extents_of));
}

void GeometricTransform::Apply(const SampleKey& key, Sample* sample) const {
  PendingMoves moves(sample);
  moves.Apply(*this, key);
  moves.Finish();
}

void GeometricTransform::ChangeFields(Fields* fields) const {
  if (!after_) return;
  for (const int f : moved_.pictures) {
    (*fields)[f].extents = {(*fields)[f].extents[0], after_->height, after_->width};
  }
  for (const int f : moved_.masks) (*fields)[f].extents = {after_->height, after_->width};
}

void PendingMoves::Apply(const Transform& transform, const SampleKey& key) {
  const GeometricTransform* const geometric = transform.geometric();
  if (geometric == nullptr) {
    Finish();
    transform.Apply(key, sample_);
    return;
  }
  const MovedFields& moved = geometric->moved();
  CHECK(!moved.pictures.empty());
  const PictureSize size =
      map_ ? map_->size : SizeOf(sample_->extents(moved.pictures[0]), FieldKind::kPicture);
  boxes_.clear();
  if (moved.boxes >= 0) {
    boxes_.resize(sample_->extents(moved.boxes)[0]);
    const std::span<const std::byte> bytes = sample_->field(moved.boxes);
    CHECK_EQ(bytes.size(), boxes_.size() * sizeof(Box));
    if (!boxes_.empty()) std::memcpy(boxes_.data(), bytes.data(), bytes.size());
  }
  const GeometricMap map = geometric->MapOf(key, {size, boxes_});
  if (map.IsIdentity(size)) return;
  if (moved.boxes >= 0) MoveLists(moved, map);
  std::optional<GeometricMap> both = map;
  if (map_) both = Composed(*map_, map);
  if (!both) {
    Finish();
    both = map;
  }
  map_ = both;
  moved_ = &moved;
}

void PendingMoves::Finish() {
  if (!map_) return;
  for (const int f : moved_->pictures) {
    const int64_t channels = sample_->extents(f)[0];
    const PictureSize size = SizeOf(sample_->extents(f), FieldKind::kPicture);
    const std::span<const uint8_t> from = sample_->pixels(f);
    MovePicture(*map_, channels, size, from, &sample_->resampler(),
                sample_->MakePixels(f, std::array{channels, map_->size.height, map_->size.width}));
  }
  for (const int f : moved_->masks) {
    const PictureSize size = SizeOf(sample_->extents(f), FieldKind::kMask);
    const std::span<const uint8_t> from = sample_->pixels(f);
    MoveMask(*map_, size, from,
             sample_->MakePixels(f, std::array{map_->size.height, map_->size.width}));
  }
  map_.reset();
}

void PendingMoves::MoveLists(const MovedFields& moved, const GeometricMap& map) {
  const size_t before = boxes_.size();
  kept_.clear();
  for (size_t i = 0; i < before; ++i) {
    if (!Keeps(map.from, boxes_[i])) continue;
    boxes_[kept_.size()] = MovedBox(map, boxes_[i]);
    kept_.push_back(static_cast<int64_t>(i));
  }
  const std::span<std::byte> boxes = sample_->Make(moved.boxes, kept_.size() * sizeof(Box));
  if (!boxes.empty()) std::memcpy(boxes.data(), boxes_.data(), boxes.size());
  for (const int f : moved.lists) {
    CHECK_EQ(sample_->extents(f)[0], static_cast<int64_t>(before))
        << "lists of a sample are parallel";
    if (f != moved.boxes) sample_->KeepEntries(f, kept_);
  }
  sample_->SetExtents(moved.boxes, std::array<int64_t, 2>{std::ssize(kept_), 4});
}

}  // namespace kumo
