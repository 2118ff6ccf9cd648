// Opens the two datasets of a job, as the [data] section of its experiment says.
#pragma once

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "data/dataset.h"

namespace kumo {

// Opens the training and the validation set that `data` names, both verified in full, and works out
// the training set's mean image where that is subtracted. Names of files are relative to
// data.directory unless they begin with '/'. FailedPrecondition where the directory is not set, the
// reader is unknown, the two sets' image sizes differ or data.crop_pad is too much for them;
// NotFound where a file is missing, saying which setting names it and where it was looked for, and
// how MNIST is had where that is asked for; otherwise what the reader says. None of these goes away
// by itself, except Unavailable.
Result<Datasets> OpenDatasets(const Experiment::Data& data);

// What becomes of the bytes of images with these fields, after the transforms: all but the mean
// image. FailedPrecondition, naming the set by `name`, where there is not a value for each channel.
Result<PixelFormula> PixelFormulaFor(const Experiment::Data& data, const Fields& fields,
                                     const std::string& name);

// What they take into memory, from the files' headers alone; fields are those of minibatches, after
// the transforms. The same errors, as far as the headers tell.
struct ExtentsOfDatasets {
  DatasetExtents train;
  DatasetExtents validation;
};
Result<ExtentsOfDatasets> MeasureDatasets(const Experiment::Data& data);

}  // namespace kumo
