// From the [data] section of an experiment to the two datasets of a job.
#pragma once

#include "common/options/experiment.h"
#include "common/status.h"
#include "data/dataset.h"

namespace kumo {

// Opens the training and the validation set that `data` names, both verified in full, and works out
// the training set's mean image where that is subtracted. Names of files are relative to
// data.directory unless they begin with '/'. FailedPrecondition where the directory is not set, the
// reader is unknown, the two sets' image sizes differ or data.crop_pad is too much for them;
// NotFound where a file is missing, saying how to get it; otherwise what the reader says. None of
// these goes away by itself, except Unavailable.
Result<Datasets> OpenDatasets(const Experiment::Data& data);

}  // namespace kumo
