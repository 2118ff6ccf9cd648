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
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/options/experiment.h"
#include "data/sample.h"

namespace kumo {

// Immutable; thread-safe.
class Transform {
 public:
  virtual ~Transform() = default;

  // Changes the sample's fields; their lengths stay.
  virtual void Apply(const SampleKey& key, Sample* sample) const = 0;
};

// What a transform is made from.
struct TransformRequest {
  const Experiment::Data& data;
  const Fields& fields;     // of the samples
  const std::string& name;  // of the data set, for messages
};

struct TransformKind {
  std::string_view name;
  // Null where the settings ask for nothing. FailedPrecondition where it cannot be done to such
  // samples.
  Result<std::unique_ptr<const Transform>> (*make)(const TransformRequest& request);
};

// In the order in which they are applied.
std::span<const TransformKind> TransformKinds();

}  // namespace kumo
