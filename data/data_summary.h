// Summary statistics of a set of labelled images or of a text.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

struct DataSummary {
  std::vector<int64_t> of_class;  // samples (of a text: tokens) per class
  // Per element of the label, if labels are no classes.
  std::vector<double> label_mean;
  std::vector<double> label_deviation;
  // Per channel, over the pixels of all samples (bytes as levels 0 .. 255); empty without pixels.
  std::vector<double> mean;
  std::vector<double> deviation;
};

// Reads all samples once. FailedPrecondition if they have no labels; the errors of Dataset::Read.
Result<DataSummary> Summarise(const Dataset& dataset);

}  // namespace kumo
