// Survey of an experiment's data: one pass over all samples of both sets by several threads, which
// finds every damaged sample and the images that are in both sets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"

namespace kumo {

struct DataSurvey {
  Datasets sets;  // as OpenForSurvey opens them
  DataSummary train, validation;
  SharedImages in_both;

  std::string NoteOfSharedImages() const { return in_both.Note(sets.validation->size()); }
  int64_t damaged() const { return std::ssize(train.damaged) + std::ssize(validation.damaged); }
};

// Called with the number of samples read so far and the number of all, by one thread at a time.
using SurveyProgress = std::function<void(int64_t read, int64_t samples)>;

// The errors of OpenForSurvey and Summarise; damaged samples are in the summaries.
Result<DataSurvey> SurveyData(const Experiment::Data& data, const SurveyProgress& progress);

// "12 of 1000 images of train are damaged; repair ...", of both sets; Ok if none is damaged.
Status DamageIn(const DataSurvey& survey);

}  // namespace kumo
