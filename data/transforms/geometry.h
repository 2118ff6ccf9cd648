// Geometry of transforms: the map from a sample's picture to its next one, and its application to
// all fields that move: pictures, masks, boxes, and the other lists of the objects in boxes.
//
// A geometric transform states only its map. So every picture of a sample gets the same draw, and
// picture, mask and boxes stay aligned.
//
// Pixel (y, x) of a picture covers [x, x + 1) across and [y, y + 1) down.
//
// Values and pure functions; thread-safe. PendingMoves belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/detection/boxes.h"
#include "common/job/fields.h"
#include "data/samples/resample.h"
#include "data/samples/sample.h"
#include "data/transforms/transform.h"

namespace kumo {

// Map from one picture to the next: a rectangle of the old picture, scaled to the new size, then
// mirrored left to right.
struct GeometricMap {
  Rectangle from;    // may extend beyond the picture
  PictureSize size;  // of the new picture
  bool mirrored = false;
  Interpolation interpolation = Interpolation::kLinear;  // of pictures that are scaled
  // Level of pictures outside the old one, by channel, borrowed from the transform; further
  // channels have the last one's, and all are 0 if it is empty. Masks are 255 there.
  std::span<const uint8_t> outside = {};

  bool scales() const { return from.height != size.height || from.width != size.width; }
  // True if it changes nothing of pictures of `of`.
  bool IsIdentity(const PictureSize& of) const {
    return !mirrored && size == of && from == Rectangle{0, 0, of.height, of.width};
  }
};

// The map that gives the bits of `first` followed by `second`; none if one map cannot.
std::optional<GeometricMap> Composed(const GeometricMap& first, const GeometricMap& second);

// True if the box's centre lies inside the rectangle; other objects are dropped.
bool Keeps(const Rectangle& from, const Box& box);
// The box in the new picture, clipped to it. Its bits are the same on every machine.
Box MovedBox(const GeometricMap& map, const Box& box);
// Fills `to`, channels x map.size, from a picture of channels x `size`.
void MovePicture(const GeometricMap& map, int64_t channels, const PictureSize& size,
                 std::span<const uint8_t> from, Resampler* resampler, std::span<uint8_t> to);
// The same for a mask, by nearest neighbour.
void MoveMask(const GeometricMap& map, const PictureSize& size, std::span<const uint8_t> from,
              std::span<uint8_t> to);

// Indices of the fields that move with the first picture.
struct MovedFields {
  explicit MovedFields(const Fields& fields);

  std::vector<int> pictures;  // FieldKind::kPicture
  std::vector<int> masks;
  std::vector<int> lists;  // the boxes among them
  int boxes = -1;          // -1: none
};

// FailedPrecondition if pictures and masks of these fields differ in height or width. Sizes that
// vary from sample to sample are compared by CheckOneSizeOf.
Status CheckOneSize(const Fields& fields, const std::string& name);
// DataLoss if pictures and masks of a sample differ.
Status CheckOneSizeOf(const Fields& fields, const Sample& sample, const std::string& name);

// The state of a sample that a map may depend on.
struct Scene {
  PictureSize size;
  std::span<const Box> boxes;
};

class GeometricTransform : public Transform {
 public:
  // after: size of the pictures after the transform; none: as before it; 0 x 0: it varies.
  GeometricTransform(const Fields& fields, std::optional<PictureSize> after)
      : moved_(fields), after_(after) {}

  virtual GeometricMap MapOf(const SampleKey& key, const Scene& scene) const = 0;

  const GeometricTransform* geometric() const final { return this; }
  void Apply(const SampleKey& key, Sample* sample) const final;
  void ChangeFields(Fields* fields) const final;
  const MovedFields& moved() const { return moved_; }

 private:
  const MovedFields moved_;
  const std::optional<PictureSize> after_;
};

// Transforms of one sample, in order. Maps of pictures and masks are put off and composed as far as
// possible, so that a picture is moved once: of an enlarged canvas that is cropped and scaled
// down nothing is made. Lists move at once. The result has the bits of one transform after the
// other.
class PendingMoves {
 public:
  explicit PendingMoves(Sample* sample) : sample_(sample) {}

  void Apply(const Transform& transform, const SampleKey& key);
  // Moves pictures and masks. To be called before the sample is used.
  void Finish();

 private:
  void MoveLists(const MovedFields& moved, const GeometricMap& map);

  Sample* const sample_;
  const MovedFields* moved_ = nullptr;  // of the pending map
  std::optional<GeometricMap> map_;
  std::vector<Box> boxes_;  // scratch
  std::vector<int64_t> kept_;
};

}  // namespace kumo
