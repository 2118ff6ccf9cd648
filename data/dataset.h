// A set of samples that can be read in any order.
//
// A dataset knows nothing of epochs, minibatches or threads: permutation.h says in which order an
// epoch visits the samples, batch_stream.h cuts that order into minibatches and reads them ahead.
//
// Readers (readers/registry.h) make datasets; whoever opened one owns it, and it outlives every
// stream that reads from it. All methods are const and thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/parameter_layout.h"
#include "common/job/pixels.h"
#include "data/sample.h"
#include "data/transforms/transform.h"

namespace kumo {

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Samples; at least 1.
  virtual int64_t size() const = 0;
  // What each sample has. Extents of 0 are told by each sample itself (Sample::extents).
  virtual const Fields& fields() const = 0;
  // Labels lie in [0, classes()); 0: they are numbers.
  virtual int classes() const = 0;
  // Their names by number; empty where the files have none.
  virtual std::span<const std::string> class_names() const { return {}; }
  // Messages name the set by this: where its samples come from.
  virtual const std::string& name() const = 0;

  // Gives `sample`, which was made for fields(), the values of sample key.sample, each of its
  // field's length; what it borrows lives as long as the set. Requires it to be in [0, size()).
  // DataLoss or Unavailable when what holds the samples fails. Only what cuts samples anew in each
  // epoch, as text is, looks at the rest of the key.
  virtual Status ReadKey(const SampleKey& key, Sample* sample) const = 0;
  // As in the first epoch of seed 1.
  Status Read(int64_t index, Sample* sample) const { return ReadKey({.sample = index}, sample); }
  // Whether all samples lie in memory, so that going through them costs little.
  virtual bool in_memory() const { return false; }
  // Whoever has passed through these samples says so: what others hold as well need not count as
  // this process' memory.
  virtual void LetGo(Range /*samples*/) const {}
};

// A sample as it goes into a minibatch: read, then transformed, maybe with another one's help.
// `sample` was made for the data set's fields. The error of Dataset::Read.
Status ReadTransformed(const Dataset& dataset,
                       std::span<const std::unique_ptr<const Transform>> transforms,
                       const SampleKey& key, Sample* sample);

// How large a data set is, as its files' headers say.
struct DatasetExtents {
  int64_t samples = 0;
  Fields fields;
  int64_t bytes = 0;  // of memory that the process takes for it; what all share does not count
};

struct Datasets {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  // What is done to samples that are trained on, and to those that are evaluated on.
  Transforms transforms;
  Transforms validation_transforms;
  // What samples of both have after that.
  Fields fields() const { return FieldsAfter(train->fields(), transforms); }
  PixelFormula pixels;  // what becomes of the images' bytes after that
};

// Calls `see` with each sample from the first on, or, of more than `most`, with so many that are
// spread evenly over the set. The error of Dataset::Read.
Status ForEachSample(const Dataset& dataset, int64_t most,
                     const std::function<void(const Sample&)>& see);

}  // namespace kumo
