#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/settings/command_line.h"
#include "common/settings/option_table.h"
#include "data/commands.h"
#include "data/dataset_finder.h"
#include "data/reading_bar.h"
#include "data/survey.h"

namespace kumo {
namespace {

// Image files that are read for mean, deviation and images in both sets: enough for three digits.
constexpr int64_t kMostImages = 20'000;
constexpr double kDefaultShare = 0.1;  // of the validation set, if there is none

double Rounded(double number) { return std::round(number * 1000) / 1000; }

// The settings of [data] that an experiment needs to read the set.
JsonFields SettingsOf(const Experiment& experiment) {
  const Experiment defaults;
  const bool split = experiment.data.SplitsTrainingFiles();
  JsonFields settings;
  for (const Option& option : OptionTable::Shared().options()) {
    if (option.section() != "data") continue;
    const std::string value = option.write(experiment);
    const bool always = option.key == "data.reader" ||
                        (option.key == "data.classes" && experiment.data.text.empty());
    const bool share = split && option.key == "data.validation_share";
    if (!always && !share && (value.empty() || value == option.write(defaults))) continue;
    settings.Add(option.key, value);
  }
  return settings;
}

void SetStatistics(const DataSurvey& survey, Experiment::Data* data) {
  const int image = FindField(survey.sets.train->fields(), kImageField);
  if (image < 0 || survey.sets.train->fields()[image].type != NumberType::kUint8) return;
  for (size_t c = 0; c < survey.train.mean.size(); ++c) {
    data->mean.push_back(Rounded(survey.train.mean[c] * data->scale));
    data->std_dev.push_back(std::max(0.001, Rounded(survey.train.deviation[c] * data->scale)));
  }
}

Result<JsonFields> Description(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindDataset(path));
  Experiment experiment;
  experiment.data = found.data;
  Experiment::Data& data = experiment.data;
  data.validation_share = kDefaultShare;
  Experiment::Data looked_at = data;
  looked_at.damaged = DamagedImages::kSkip;
  KUMO_ASSIGN_OR_RETURN(const ExtentsOfDatasets extents, MeasureDatasets(looked_at));
  if (TraitsOf(data.reader).image_files) {
    looked_at.train_limit = looked_at.validation_limit = kMostImages;
  }
  ReadingBar bar;
  KUMO_ASSIGN_OR_RETURN(
      const DataSurvey survey,
      SurveyData(looked_at, [&](int64_t read, int64_t samples) { bar.Show(read, samples); }));
  SetStatistics(survey, &data);
  const Dataset& train = *survey.sets.train;
  const Field& field = extents.train.fields.front();
  JsonArray shape;
  for (const int64_t extent : field.extents) shape.Add(extent);
  JsonFields report;
  report.Add("form", found.form)
      .Add("settings", SettingsOf(experiment))
      .Add("train_samples", extents.train.samples)
      .Add("validation_samples", extents.validation.samples)
      .Add("field", field.name)
      .Add("bytes", field.type == NumberType::kUint8)
      .Add("extents", shape)
      .Add("classes", train.classes())
      .Add("objects", survey.train.objects ? survey.train.objects->objects : 0);
  const int label = FindField(train.fields(), kLabelField);
  report.Add("label_numbers", label < 0 ? 0 : train.fields()[label].numbers());
  if (const std::vector<double>& means = survey.train.label_mean; !means.empty()) {
    report.Add("label_mean",
               std::reduce(means.begin(), means.end()) / static_cast<double>(means.size()));
    report.Add("label_deviation", *std::ranges::max_element(survey.train.label_deviation));
  }
  report.Add("damaged", survey.damaged());
  const std::string note = survey.NoteOfSharedImages();
  if (!note.empty()) report.Add("note", note);
  return report;
}

}  // namespace

int RunDescribe(std::span<const std::string> args) {
  std::string path;
  CommandLine line("kumo-data describe",
                   "Recognises a data set, for kumo new --data, and prints one JSON object: the "
                   "settings to read it,\nand its figures.");
  line.AddPositional("PATH", "Folder or file of the data set", /*required=*/true, &path);
  line.AddNote(
      "Exit codes: 0 done; 64 wrong command line; others: no data set can be read there, "
      "and the JSON\nobject has the error.");
  return RunForProgram("kumo-data describe", args, &line, [&] { return Description(path); });
}

}  // namespace kumo
