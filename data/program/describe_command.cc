#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/settings/command_line.h"
#include "common/settings/option_table.h"
#include "data/finders/dataset_finder.h"
#include "data/finders/table_finder.h"
#include "data/program/commands.h"
#include "data/reading_bar.h"
#include "data/survey.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

// Samples with image files that are read for mean, deviation, classes of masks and images in both
// sets: enough for three digits.
constexpr int64_t kMostImages = 20'000;
constexpr double kDefaultShare = 0.1;  // of the validation set, if there is none

double Rounded(double number) { return std::round(number * 1000) / 1000; }

// Sets data.classes to the number of classes up to the largest one that a pixel of the masks has.
// Masks of one class teach nothing.
Status SetClassesOfMasks(const DataSurvey& survey, FoundDataset* found) {
  if (std::ssize(survey.train.damaged) == survey.sets.train->size()) {
    return DataLoss("no mask can be read; the first: " + survey.train.damaged.front());
  }
  int classes = 0;
  int64_t used = 0;
  for (size_t c = 0; c < survey.train.of_class.size(); ++c) {
    if (survey.train.of_class[c] + survey.validation.of_class[c] == 0) continue;
    classes = static_cast<int>(c) + 1;
    ++used;
  }
  if (classes < 2) {
    const Experiment::Data& data = found->data;
    const bool folder = TraitsOf(data.reader).label_files;
    return InvalidArgument(
        JoinPath(data.directory, folder ? data.train_labels : data.train_images) +
        ": the pixels of all masks are 0 or 255, but 255 is no class; write the number of its "
        "class to each pixel, such as 1 in the place of 255");
  }
  if (used < classes) {
    found->notes.push_back("only " + std::to_string(used) + " of " + std::to_string(classes) +
                           " classes occur in the masks; number them from 0 without gaps");
  }
  found->data.classes = classes;
  found->form += " of " + Counted(classes, "class", "classes");
  return OkStatus();
}

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

// InvalidArgument, with the path, if an experiment file cannot hold a path of these settings.
Status CheckPaths(const Experiment& experiment) {
  for (const Option& option : OptionTable::Shared().options()) {
    if (option.section() != "data" || option.base == PathBase::kNone) continue;
    const std::string value = option.write(experiment);
    const bool quoted = value.find('"') != std::string::npos;
    const bool foreign = !IsUtf8(value);
    if (!quoted && !foreign && Printable(value, value.size() + 3) == value) continue;
    return InvalidArgument(Printable(value) +
                           ": an experiment file cannot hold this path, which has " +
                           (quoted    ? "a double quote"
                            : foreign ? "bytes that are not UTF-8"
                                      : "a control character") +
                           "; rename it, or make a link to the folder and name that");
  }
  return OkStatus();
}

// The mean and deviation of the first picture are for all of them, if they have its channels.
void SetStatistics(const DataSurvey& survey, Experiment::Data* data) {
  const Fields& fields = survey.sets.train->fields();
  const std::vector<int> pictures = FindPictures(fields);
  const auto alike = [&](int picture) {
    return fields[picture].type == NumberType::kUint8 &&
           fields[picture].extents[0] == fields[pictures[0]].extents[0];
  };
  if (pictures.empty() || !std::ranges::all_of(pictures, alike)) return;
  for (size_t c = 0; c < survey.train.mean.size(); ++c) {
    data->mean.push_back(Rounded(survey.train.mean[c] * data->scale));
    data->std_dev.push_back(std::max(0.001, Rounded(survey.train.deviation[c] * data->scale)));
  }
}

Result<JsonFields> Description(const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(FoundDataset found, FindDataset(path));
  Experiment experiment;
  experiment.data = found.data;
  KUMO_RETURN_IF_ERROR(CheckPaths(experiment));
  Experiment::Data& data = experiment.data;
  data.validation_share = kDefaultShare;
  Experiment::Data looked_at = data;
  looked_at.damaged = DamagedImages::kSkip;
  KUMO_ASSIGN_OR_RETURN(const ExtentsOfDatasets extents, MeasureDatasets(looked_at));
  // A table may have no pictures.
  const bool limited = TraitsOf(data.reader).image_files &&
                       std::ranges::find(extents.train.fields, FieldKind::kPicture, &Field::kind) !=
                           extents.train.fields.end();
  if (limited) {
    looked_at.train_limit = looked_at.validation_limit = kMostImages;
  }
  ReadingBar bar;
  KUMO_ASSIGN_OR_RETURN(
      const DataSurvey survey,
      SurveyData(looked_at, [&](int64_t read, int64_t samples) { bar.Show(read, samples); }));
  SetStatistics(survey, &data);
  const Dataset& train = *survey.sets.train;
  const Fields& fields = extents.train.fields;
  const bool masks = survey.train.counts_pixels;
  if (masks) {
    KUMO_RETURN_IF_ERROR(SetClassesOfMasks(survey, &found));
    data.classes = found.data.classes;
    if (limited && std::max(extents.train.samples, extents.validation.samples) > kMostImages) {
      found.notes.push_back("the classes are those in the masks of the first " +
                            std::to_string(kMostImages) +
                            " images; if others have more, set data.classes to their number");
    }
  }
  const Field& field = fields[std::max(0, FindField(fields, found.input))];
  const int features = FindField(fields, kFeaturesField);
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
      .Add("features", features < 0 ? 0 : fields[features].numbers())
      .Add("classes", masks ? data.classes : train.classes())
      .Add("masks", masks)
      .Add("objects", survey.train.objects ? survey.train.objects->objects : 0);
  const int label = FindField(train.fields(), kLabelField);
  report.Add("label_numbers", label < 0 ? 0 : train.fields()[label].numbers());
  if (const std::vector<double>& means = survey.train.label_mean; !means.empty()) {
    report.Add("label_mean",
               std::reduce(means.begin(), means.end()) / static_cast<double>(means.size()));
    report.Add("label_deviation", *std::ranges::max_element(survey.train.label_deviation));
  }
  report.Add("damaged", survey.damaged());
  JsonArray columns, notes;
  for (const auto& [name, use] : found.columns) {
    columns.Add(JsonFields().Add("column", name).Add("use", use));
  }
  report.Add("columns", columns);
  for (const std::string& note : found.notes) notes.Add(note);
  const std::string shared = survey.NoteOfSharedImages();
  if (!shared.empty()) notes.Add(shared);
  report.Add("notes", notes);
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
