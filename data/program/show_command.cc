#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/installation.h"
#include "common/base/json.h"
#include "common/settings/command_line.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/parser.h"
#include "common/settings/settings_json.h"
#include "data/class_sampling.h"
#include "data/data_summary.h"
#include "data/open_datasets.h"
#include "data/pictures/png_file.h"
#include "data/program/commands.h"
#include "data/program/contact_sheet.h"
#include "data/reading_bar.h"
#include "data/survey.h"

namespace kumo {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> sets;
  std::string sheet;
  int columns = 10;
  bool json = false;
};

CommandLine Describe(Arguments& arguments) {
  CommandLine line(
      "kumo data",
      "Shows an experiment's data: number of samples per class, objects of detection data, or\n"
      "tokens of a text, pixel statistics, all damaged images, and, with --sheet, an image of\n"
      "transformed training samples.");
  line.AddPositional("FILE", "Experiment file, or the name of an installed experiment", true,
                     [&](const std::string& text) {
                       arguments.file = FindExperiment(text, FindInstallation().share);
                     });
  line.AddSettings(&arguments.sets);
  line.AddOption("sheet", "FILE.png", Allowed(),
                 "Write an image with a row of training samples per class, in the order of the "
                 "table, transformed as in the first epoch; samples without a class of their own "
                 "in their order, with boxes and masks",
                 &arguments.sheet, "none");
  line.AddOption("columns", "N", {.min = 1, .max = 100}, "Samples per row of the image",
                 &arguments.columns);
  line.AddFlag("json", "Print JSON", &arguments.json);
  line.AddNote(
      "The underlying program kumo-data also draws data sets: kumo-data digits --help, kumo-data "
      "scenes --help.");
  line.AddNote(
      "Exit codes: 0 done; 64 wrong command line; 75 temporary failure; 78 the experiment\n"
      "or its data are invalid.");
  return line;
}

// One of the two sets, with its summary.
struct Shown {
  const Dataset& dataset;
  const Fields fields;  // after the transforms
  DataSummary summary;
  bool tokens = false;  // samples are tokens of a text, by the reader
};

std::string ClassName(const Shown& set, int64_t number) {
  const auto names = set.dataset.class_names();
  if (names.empty()) return std::to_string(number);
  // A token may be a newline or a blank.
  return std::to_string(number) + " " + (set.tokens ? ToJson(names[number]) : names[number]);
}

// "480", or "333 to 500".
std::string RangeText(int64_t least, int64_t most) {
  return least == most ? std::to_string(least)
                       : std::to_string(least) + " to " + std::to_string(most);
}

void PrintObjects(const ObjectFigures& figures, int64_t images) {
  std::printf(
      "%-10s  objects: %lld, %.3g per image, at most %lld; %lld difficult; %lld images "
      "without any\n",
      "", static_cast<long long>(figures.objects),
      static_cast<double>(figures.objects) / static_cast<double>(std::max<int64_t>(1, images)),
      static_cast<long long>(figures.most), static_cast<long long>(figures.difficult),
      static_cast<long long>(figures.images_without));
  if (figures.most_height == 0) return;
  // A set that no augmentation crops is read in the size of the network's input.
  std::printf(
      "%-10s  box areas: %lld below 32x32, %lld below 96x96, %lld larger, in images %s pixels high "
      "and %s wide\n",
      "", static_cast<long long>(figures.by_area[0]), static_cast<long long>(figures.by_area[1]),
      static_cast<long long>(figures.by_area[2]),
      RangeText(figures.least_height, figures.most_height).c_str(),
      RangeText(figures.least_width, figures.most_width).c_str());
}

// The first field of a table without pictures may be its label.
const Field& InputOf(const Shown& set) {
  const auto input = std::ranges::find_if(
      set.fields, [](const Field& field) { return field.name != kLabelField; });
  return input == set.fields.end() ? set.fields.front() : *input;
}

void PrintSet(const char* title, const Shown& set) {
  std::printf("%-10s  %s\n", title, set.dataset.name().c_str());
  const Field& input = InputOf(set);
  std::printf("%-10s  %lld samples, %s of %s\n", "", static_cast<long long>(set.dataset.size()),
              NameOf(input.type), ExtentsText(input.extents).c_str());
  if (set.tokens) {
    std::printf("%-10s  vocabulary: %d\n", "", set.dataset.classes());
  }
  for (const std::string& line : set.dataset.notes().Lines()) {
    std::printf("%-10s  %s\n", "", line.c_str());
  }
  const DataSummary& summary = set.summary;
  if (summary.objects) {
    PrintObjects(*summary.objects, set.dataset.size() - std::ssize(summary.damaged));
  }
  for (size_t c = 0; c < summary.mean.size(); ++c) {
    std::printf("%-10s  channel %zu: mean %.2f, deviation %.2f\n", "", c, summary.mean[c],
                summary.deviation[c]);
  }
  for (size_t i = 0; i < summary.label_mean.size(); ++i) {
    std::printf("%-10s  label %zu: mean %.4g, deviation %.4g\n", "", i, summary.label_mean[i],
                summary.label_deviation[i]);
  }
}

// sampling: of the training set; null if each sample is trained once in an epoch.
void PrintClasses(const Shown& train, const Shown& validation, const ClassSampling* sampling) {
  const int64_t classes = train.dataset.classes();
  if (classes == 0) return;
  size_t width = 0;
  for (int64_t c = 0; c < classes; ++c) {
    width = std::max(width, ClassName(train, c).size());
  }
  const char* const title = train.summary.objects         ? "class (objects)"
                            : train.summary.counts_pixels ? "class (pixels)"
                                                          : "class";
  width = std::max(width, std::string_view(title).size());
  const int columns = static_cast<int>(width);
  std::printf("%-*s  %10s  %10s%s\n", columns, title, "training", "validation",
              sampling == nullptr ? "" : "   per epoch");
  for (int64_t c = 0; c < classes; ++c) {
    std::printf("%-*s  %10lld  %10lld", columns, ClassName(train, c).c_str(),
                static_cast<long long>(train.summary.of_class[c]),
                static_cast<long long>(validation.summary.of_class[c]));
    if (sampling != nullptr) std::printf("  %10lld", static_cast<long long>(sampling->DrawsOf(c)));
    std::printf("\n");
  }
}

// Empty unless samples have classes: not for a text, whose tokens are none, nor for detection data
// and masks.
std::vector<double> WeightsFor(const Shown& train) {
  if (train.tokens || train.summary.objects || train.summary.counts_pixels) return {};
  return BalancedWeights(train.summary.of_class);
}

// Prints weights for classes that differ by more than a factor of 2.
void PrintBalance(const Shown& train) {
  const std::vector<double> weights = WeightsFor(train);
  if (weights.empty()) return;
  const std::vector<int64_t>& counts = train.summary.of_class;
  const int64_t most = std::ranges::max(counts);
  int64_t least = most;
  for (const int64_t count : counts) least = count > 0 ? std::min(least, count) : least;
  if (most <= 2 * least) return;
  std::printf(
      "note        the largest class has %.3g times as many samples as the smallest; to "
      "balance them,\n            set data.class_shares = equal, or in the network's "
      "loss\n            class_weights: [",
      static_cast<double>(most) / static_cast<double>(least));
  const char* separator = "";
  for (const double weight : weights) {
    std::printf("%s%.4g", std::exchange(separator, ", "), weight);
  }
  std::printf("]\n");
}

JsonArray NumbersOf(std::span<const double> values) {
  JsonArray numbers;
  for (const double value : values) numbers.Add(value);
  return numbers;
}

JsonFields ToFields(const LeftOut& left_out) {
  JsonFields endings;
  for (const auto& [ending, files] : left_out.endings) endings.Add(ending, files);
  return JsonFields()
      .Add("files", left_out.files)
      .Add("endings", endings)
      .Add("hidden_files", left_out.hidden_files)
      .Add("hidden_folders", left_out.hidden_folders)
      .Add("unusable", ToJsonArray(left_out.unusable))
      .Add("empty_classes", ToJsonArray(left_out.empty_classes));
}

JsonFields ToFields(const ObjectFigures& figures) {
  JsonFields fields;
  fields.Add("objects", figures.objects)
      .Add("difficult", figures.difficult)
      .Add("images_without", figures.images_without)
      .Add("most", figures.most)
      .Add("small", figures.by_area[0])
      .Add("medium", figures.by_area[1])
      .Add("large", figures.by_area[2]);
  if (figures.most_height > 0) {
    fields.Add("heights", JsonArray().Add(figures.least_height).Add(figures.most_height))
        .Add("widths", JsonArray().Add(figures.least_width).Add(figures.most_width));
  }
  return fields;
}

// sampling: of the set, or null.
JsonFields ToFields(const Shown& set, const ClassSampling* sampling) {
  JsonArray classes;
  for (int64_t c = 0; c < set.dataset.classes(); ++c) {
    JsonFields one;
    if (!set.dataset.class_names().empty()) one.Add("name", set.dataset.class_names()[c]);
    one.Add(set.summary.objects         ? "objects"
            : set.summary.counts_pixels ? "pixels"
                                        : "samples",
            set.summary.of_class[c]);
    if (sampling != nullptr) one.Add("per_epoch", sampling->DrawsOf(c));
    classes.Add(one);
  }
  JsonFields fields;
  fields.Add("name", set.dataset.name())
      .Add("samples", set.dataset.size())
      .Add("extents", ExtentsText(InputOf(set).extents))
      .Add("classes", classes);
  if (set.summary.objects) fields.Add("objects", ToFields(*set.summary.objects));
  return fields.Add("mean", NumbersOf(set.summary.mean))
      .Add("deviation", NumbersOf(set.summary.deviation))
      .Add("label_mean", NumbersOf(set.summary.label_mean))
      .Add("label_deviation", NumbersOf(set.summary.label_deviation))
      .Add("left_out", ToFields(set.dataset.notes().left_out))
      .Add("notes", ToJsonArray(set.dataset.notes().remarks));
}

// The data as training reads it, with the survey's findings.
struct Contents {
  DataSurvey survey;
  // If damaged images are replaced: the sets with the replacements.
  std::optional<Datasets> replaced;
  DataSummary of_train, of_validation;

  const Datasets& sets() const { return replaced ? *replaced : survey.sets; }
};

Result<Contents> ReadContents(const Experiment::Data& data) {
  Contents contents;
  ReadingBar bar;
  const auto show = [&](int64_t read, int64_t samples) { bar.Show(read, samples); };
  KUMO_ASSIGN_OR_RETURN(contents.survey, SurveyData(data, show));
  contents.of_train = contents.survey.train;
  contents.of_validation = contents.survey.validation;
  if (contents.survey.damaged() == 0 || data.damaged == DamagedImages::kRefuse) return contents;
  Experiment::Data sets_only = data;
  sets_only.subtract_mean = false;
  sets_only.class_shares = {};
  KUMO_ASSIGN_OR_RETURN(contents.replaced, OpenDatasets(sets_only));
  const auto summarise = [&](const Dataset& dataset) {
    return Summarise(dataset, {.threads = data.threads,
                               .progress = [&](int64_t read) { show(read, dataset.size()); }});
  };
  KUMO_ASSIGN_OR_RETURN(contents.of_train, summarise(*contents.replaced->train));
  KUMO_ASSIGN_OR_RETURN(contents.of_validation, summarise(*contents.replaced->validation));
  return contents;
}

void PrintDamaged(const DataSurvey& survey) {
  for (const DataSummary* summary : {&survey.train, &survey.validation}) {
    for (const std::string& one : summary->damaged) std::printf("damaged     %s\n", one.c_str());
  }
}

JsonArray DamagedOf(const DataSurvey& survey) {
  JsonArray damaged;
  for (const DataSummary* summary : {&survey.train, &survey.validation}) {
    for (const std::string& one : summary->damaged) damaged.Add(one);
  }
  return damaged;
}

// Sampling of the training set; null without data.class_shares.
Result<std::unique_ptr<ClassSampling>> SamplingOf(const Experiment::Data& data,
                                                  const Dataset& train) {
  std::unique_ptr<ClassSampling> none;
  if (!data.class_shares.given()) return none;
  return ClassSampling::Make(data.class_shares, &train);
}

// Prints the data also if samples are damaged or a class lacks samples; both are errors if they end
// a job.
Status Show(const Arguments& arguments) {
  KUMO_ASSIGN_OR_RETURN(const Experiment experiment,
                        ParseExperiment(arguments.file, arguments.sets, VariablesOf(environ)));
  if (experiment.worker.OwnsModel()) {
    return FailedPrecondition("worker.command = " + experiment.worker.command +
                              ": that program has the job's data, and this one does not know them");
  }
  KUMO_ASSIGN_OR_RETURN(Contents contents, ReadContents(experiment.data));
  const DataSurvey& survey = contents.survey;
  const bool refuses = experiment.data.damaged == DamagedImages::kRefuse;
  const Datasets& sets = contents.sets();
  const auto sampling = SamplingOf(experiment.data, *sets.train);
  const ClassSampling* const draws_from = sampling.ok() ? sampling->get() : nullptr;
  Status problem = refuses ? DamageIn(survey) : OkStatus();
  if (problem.ok()) problem = sampling.status();
  const bool tokens = TraitsOf(experiment.data.reader).samples == SampleKind::kTokens;
  const Shown train{*sets.train, sets.fields(), std::move(contents.of_train), tokens};
  const Shown validation{*sets.validation, sets.fields(), std::move(contents.of_validation),
                         tokens};
  const bool draws = !arguments.sheet.empty() && problem.ok();
  if (draws) {
    KUMO_ASSIGN_OR_RETURN(ContactSheet sheet,
                          DrawContactSheet(sets, experiment.job.seed, arguments.columns));
    KUMO_RETURN_IF_ERROR(WritePng(sheet.canvas(), arguments.sheet));
  }
  if (arguments.json) {
    JsonFields fields;
    fields.Add("train", ToFields(train, draws_from));
    fields.Add("validation", ToFields(validation, nullptr));
    fields.Add("balanced_weights", NumbersOf(WeightsFor(train)));
    fields.Add("damaged", DamagedOf(survey));
    fields.Add("validation_images_in_both", survey.in_both.images);
    if (draws) fields.Add("sheet", arguments.sheet);
    std::printf("%s\n", fields.object().c_str());
    return problem;
  }
  PrintSet("training", train);
  PrintSet("validation", validation);
  PrintClasses(train, validation, draws_from);
  if (!experiment.data.class_shares.given()) PrintBalance(train);
  PrintDamaged(survey);
  if (!refuses && survey.damaged() > 0) {
    std::printf("note        the next image takes the place of each damaged one\n");
  }
  if (const std::string note = survey.NoteOfSharedImages(); !note.empty()) {
    std::printf("note        %s\n", note.c_str());
  }
  if (draws) std::printf("sheet       %s\n", arguments.sheet.c_str());
  return problem;
}

}  // namespace

int RunShow(std::span<const std::string> args) {
  Arguments arguments;
  CommandLine line = Describe(arguments);
  return RunCommand("kumo data", args, &line, [&] { return Show(arguments); });
}

}  // namespace kumo
