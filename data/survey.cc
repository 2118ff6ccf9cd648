#include "data/survey.h"

#include <utility>
#include <vector>

#include "data/readers/image_set.h"

namespace kumo {
namespace {

void PutFirst(std::vector<std::string> found, std::vector<std::string>* damaged) {
  found.insert(found.end(), std::make_move_iterator(damaged->begin()),
               std::make_move_iterator(damaged->end()));
  *damaged = std::move(found);
}

std::string Count(const DataSummary& summary, const Dataset& dataset) {
  return std::to_string(summary.damaged.size()) + " of " + std::to_string(dataset.size()) +
         " images of " + dataset.name();
}

}  // namespace

Result<DataSurvey> SurveyData(const Experiment::Data& data, const SurveyProgress& progress) {
  DataSurvey survey;
  DamagedAtOpening at_opening;
  KUMO_ASSIGN_OR_RETURN(survey.sets, OpenForSurvey(data, &at_opening));
  const Dataset& train = *survey.sets.train;
  const Dataset& validation = *survey.sets.validation;
  const int64_t samples = train.size() + validation.size();
  const auto from = [&](int64_t before) {
    SummaryOptions options;
    options.threads = data.threads;
    options.progress = [&progress, before, samples](int64_t read) {
      progress(before + read, samples);
    };
    return options;
  };
  KUMO_ASSIGN_OR_RETURN(survey.train, Summarise(train, from(0)));
  KUMO_ASSIGN_OR_RETURN(survey.validation, Summarise(validation, from(train.size())));
  PutFirst(std::move(at_opening.train), &survey.train.damaged);
  PutFirst(std::move(at_opening.validation), &survey.validation.damaged);
  survey.in_both = ImagesInBoth(survey.train, survey.validation);
  return survey;
}

Status DamageIn(const DataSurvey& survey) {
  std::string text;
  if (!survey.train.damaged.empty()) text = Count(survey.train, *survey.sets.train);
  if (!survey.validation.damaged.empty()) {
    text += (text.empty() ? "" : " and ") + Count(survey.validation, *survey.sets.validation);
  }
  if (text.empty()) return OkStatus();
  return DataLoss(text +
                  " cannot be read; repair or remove these files, or replace each by the "
                  "next image with data.damaged = skip");
}

}  // namespace kumo
