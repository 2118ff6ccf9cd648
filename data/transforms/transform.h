// Transforms: operations on a sample between its reading and its minibatch, and the visible list of
// them. A new transform is one file beside this one and one line in registry.cc.
//
// A transform sees all fields of a sample, so that they change consistently, by their kind
// (FieldKind): all pictures of a sample get the same draw, and masks and boxes move with them
// (geometry.h). Its draws depend on (seed, epoch, sample) alone, so any process and thread draws
// the same for a sample. Draws are part of a job's mathematics and never change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/settings/experiment.h"
#include "data/samples/dataset.h"
#include "data/samples/sample.h"

namespace kumo {

// Random streams of a sample, by transform. Part of a job's mathematics: never renumber.
enum class TransformStream : uint64_t {
  kCropAndFlip = 0,
  kRandomResizedCrop = 1,
  kColourJitter = 2,
  kCutout = 3,
  kMixup = 4,
  kPhotometric = 5,
  kExpand = 6,
  kObjectCrop = 7,
  kInterpolation = 8,
};
Rng StreamOf(const SampleKey& key, TransformStream stream);

class GeometricTransform;

// Immutable; thread-safe.
class Transform {
 public:
  virtual ~Transform() = default;

  // Changes the sample's fields.
  virtual void Apply(const SampleKey& key, Sample* sample) const = 0;
  // Changes `fields` of samples before the transform to those after it.
  virtual void ChangeFields(Fields* /*fields*/) const {}

  // The transform, if it only moves pixels (geometry.h); else null.
  virtual const GeometricTransform* geometric() const { return nullptr; }

  // Number of a partner sample to mix in after both went through Apply; none if there is none.
  virtual std::optional<int64_t> PartnerOf(const SampleKey& /*key*/) const { return std::nullopt; }
  // partner: after this transform's Apply, itself unmixed.
  virtual void Mix(const SampleKey& /*key*/, const Sample& /*partner*/, Sample* /*sample*/) const {}
};
using Transforms = std::vector<std::unique_ptr<const Transform>>;
// The fields after all transforms.
Fields FieldsAfter(Fields fields, std::span<const std::unique_ptr<const Transform>> transforms);

// Parameters for making a transform.
struct TransformRequest {
  const Experiment::Data& data;
  const Fields& fields;     // of the samples after the previous transforms
  const std::string& name;  // of the data set, for messages
  bool training = true;     // false: evaluated samples
  int classes = 0;          // of the data set
  int64_t samples = 0;
  const Fields* read = nullptr;  // of the samples before all transforms; null: `fields`
  std::string_view settings = "the transform";  // that request the transform, for messages
};

// Index of the first picture; if there is none, of the field "image" of numbers, which
// MakeTransforms refuses; -1: neither. Only pictures have three extents.
int FindPicture(const Fields& fields);
// FailedPrecondition if the field that FindPicture finds is no picture. To be called before its
// extents are read. Requires that it finds one.
Status CheckInBytes(const TransformRequest& request);
// Indices of all pictures; if there is none, of FindPicture, if that finds a field.
std::vector<int> FindPictures(const Fields& fields);

struct PictureSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const PictureSize&) const = default;
};
// The size of pictures for the network: data.image_size, or the size before all transforms.
// FailedPrecondition if the first picture has other channels than data.image_size, or if sizes vary
// and it is empty. Requires a picture.
Result<PictureSize> WantedSize(const TransformRequest& request);

// Levels of the colour that data.mean maps to 0, by channel; grey (128) without data.mean.
std::vector<uint8_t> MeanColour(const Experiment::Data& data, int64_t channels);

struct TransformKind {
  std::string_view name;
  // Null if the settings do not request it. FailedPrecondition if it cannot be applied to such
  // samples.
  Result<std::unique_ptr<const Transform>> (*make)(const TransformRequest& request);
};

// Makes all transforms that the settings request. FailedPrecondition also if the samples have an
// unsupported element type, or pictures of several sizes.
Result<Transforms> MakeTransforms(TransformRequest request);

// Reads a sample and transforms it as for a minibatch; transforms may read a partner sample.
// `sample` was made for the dataset's fields. The errors of Dataset::Read; DataLoss if pictures
// that are moved together differ in size.
Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample);

}  // namespace kumo
