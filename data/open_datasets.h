// Opening of a job's two datasets, as the [data] section of its experiment specifies.
//
// Functions; thread-safe. Datasets is a value of its owner; its datasets and transforms are
// immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/fields.h"
#include "common/job/pixels.h"
#include "common/settings/experiment.h"
#include "data/samples/dataset.h"
#include "data/transforms/transform.h"

namespace kumo {

// The two data sets of a job with their transforms.
struct Datasets {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  // The samples of an epoch by data.class_shares: a view of `train`. Null: all samples of `train`.
  std::unique_ptr<const Dataset> sampled;
  // The set that an epoch trains on, as large as `train`.
  const Dataset& trained() const { return sampled ? *sampled : *train; }
  // Transforms of the training samples, and of the evaluated samples.
  Transforms transforms;
  Transforms validation_transforms;
  // Fields of both sets' samples after the transforms.
  Fields fields() const { return FieldsAfter(train->fields(), transforms); }
  // By field of fields(): the conversion of its transformed bytes to numbers.
  std::vector<PixelFormula> pixels;
};

// Opens the training and the validation set, verifies both in full, and computes the training set's
// mean images if they are subtracted. File names are relative to data.directory unless they begin
// with '/'. Without data.validation_images the training files are split (data.validation_share).
// FailedPrecondition if the directory or data.text is not set, the two sets differ in fields
// or class names, or a setting does not fit the data (data.mean, data.subtract_mean,
// data.crop_pad, data.class_shares); NotFound if a file is missing, with its setting, its full path
// and advice how to get known data sets; otherwise the reader's errors. Only Unavailable is
// temporary.
Result<Datasets> OpenDatasets(const Experiment::Data& data);

// Opens both sets to find all damaged images (data/survey.h): whatever data.damaged is, a damaged
// image is an error of its sample, or is in `damaged` if all images are decoded at the start. No
// mean image is computed, and data.class_shares is not used. Otherwise as OpenDatasets.
struct DamagedAtOpening {
  std::vector<std::string> train, validation;  // "FILE: REASON"
};
Result<Datasets> OpenForSurvey(const Experiment::Data& data, DamagedAtOpening* damaged);

// By field: the conversion of its transformed bytes to numbers, without the mean images. Means and
// deviations of channels are those of pictures; of other bytes, as masks, only data.scale counts.
// FailedPrecondition, with the set's `name`, if a setting does not have one value per channel of
// each picture.
Result<std::vector<PixelFormula>> PixelFormulasFor(const Experiment::Data& data,
                                                   const Fields& fields, const std::string& name);

// Bytes of memory that the images or the annotations of one set may take: a quarter of the
// machine's, as there are two sets and several processes; INT64_MAX if that is unknown.
int64_t RoomOfOneSet();

// The sets' sizes from the files' headers alone; fields are a minibatch's, after the
// transforms. The same errors, as far as the headers show them.
struct ExtentsOfDatasets {
  DatasetExtents train;
  DatasetExtents validation;
};
Result<ExtentsOfDatasets> MeasureDatasets(const Experiment::Data& data);

}  // namespace kumo
