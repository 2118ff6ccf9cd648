// What a set of labelled images, or of a text, holds, in numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "data/dataset.h"

namespace kumo {

struct DataSummary {
  std::vector<int64_t> of_class;  // labels, by class: samples, or a text's tokens
  // Of each of a label's numbers, where these are not of classes.
  std::vector<double> label_mean;
  std::vector<double> label_deviation;
  // Of each channel's pixels, in levels of 0 .. 255 where they are bytes, over all samples; empty
  // where these have none.
  std::vector<double> mean;
  std::vector<double> deviation;
};

// Goes through all samples once. FailedPrecondition where these have no labels; the error of
// Dataset::Read.
Result<DataSummary> Summarise(const Dataset& dataset);

}  // namespace kumo
