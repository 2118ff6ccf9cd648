// What is done to a sample between reading it and putting it into a minibatch: the list of
// transforms. Adding one is one file beside this one and one line in registry.cc.
//
// A transform sees all fields of a sample, so that what belongs together moves together. What it
// draws is named by (seed, epoch, sample) alone: any process draws the same for any sample, whoever
// reads it in whatever order, on however many threads. Draws are part of a job's mathematics: what
// is drawn never changes.
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
#include "data/sample.h"

namespace kumo {

// Which of a sample's streams a transform draws from. Part of a job's mathematics: never renumber
// them.
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
  // Makes of the fields that samples have before it those that they have after it.
  virtual void ChangeFields(Fields* /*fields*/) const {}

  // Another sample that goes into this one, after both went through Apply: none, or its number.
  virtual std::optional<int64_t> PartnerOf(const SampleKey& /*key*/) const { return std::nullopt; }
  // partner: after this transform's Apply, with which nothing was mixed.
  virtual void Mix(const SampleKey& /*key*/, const Sample& /*partner*/, Sample* /*sample*/) const {}
};
using Transforms = std::vector<std::unique_ptr<const Transform>>;
// What samples of `fields` have after them all.
Fields FieldsAfter(Fields fields, std::span<const std::unique_ptr<const Transform>> transforms);

// What a transform is made from.
struct TransformRequest {
  const Experiment::Data& data;
  const Fields& fields;     // of the samples, after the transforms before this one
  const std::string& name;  // of the data set, for messages
  bool training = true;     // false: samples to evaluate on
  int classes = 0;          // of the data set
  int64_t samples = 0;
};
// The extents that images are to have for the network: data.image_size, or what `field` has.
// FailedPrecondition where these differ in their channels.
Result<std::vector<int64_t>> WantedExtents(const TransformRequest& request, const Field& field);

struct TransformKind {
  std::string_view name;
  // Null where the settings ask for nothing. FailedPrecondition where it cannot be done to such
  // samples.
  Result<std::unique_ptr<const Transform>> (*make)(const TransformRequest& request);
};

// In the order in which they are applied.
std::span<const TransformKind> TransformKinds();

// All that the settings ask for. FailedPrecondition also where it cannot be done to samples of
// another type of number.
Result<Transforms> MakeTransforms(TransformRequest request);

}  // namespace kumo
