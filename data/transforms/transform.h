// Transforms: operations on a sample between its reading and its minibatch, and the visible list of
// them. A new transform is one file beside this one and one line in registry.cc.
//
// A transform sees all fields of a sample, so that they change consistently. Its draws depend on
// (seed, epoch, sample) alone, so any process and thread draws the same for a sample. Draws are
// part of a job's mathematics and never change.
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
};
Rng StreamOf(const SampleKey& key, TransformStream stream);

// Immutable; thread-safe.
class Transform {
 public:
  virtual ~Transform() = default;

  // Changes the sample's fields.
  virtual void Apply(const SampleKey& key, Sample* sample) const = 0;
  // Changes `fields` of samples before the transform to those after it.
  virtual void ChangeFields(Fields* /*fields*/) const {}

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
};
// The image extents for the network: data.image_size, or those of `field`. FailedPrecondition if
// the numbers of channels differ.
Result<std::vector<int64_t>> WantedExtents(const TransformRequest& request, const Field& field);

struct TransformKind {
  std::string_view name;
  // Null if the settings do not request it. FailedPrecondition if it cannot be applied to such
  // samples.
  Result<std::unique_ptr<const Transform>> (*make)(const TransformRequest& request);
};

// In the order of application.
std::span<const TransformKind> TransformKinds();

// Makes all transforms that the settings request. FailedPrecondition also if the samples have an
// unsupported element type.
Result<Transforms> MakeTransforms(TransformRequest request);

// Reads a sample and transforms it as for a minibatch; transforms may read a partner sample.
// `sample` was made for the dataset's fields. The errors of Dataset::Read.
Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample);

}  // namespace kumo
