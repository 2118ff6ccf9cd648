#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/installation.h"
#include "common/base/json.h"
#include "common/settings/command_line.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/parser.h"
#include "data/program/commands.h"
#include "data/reading_bar.h"
#include "data/survey.h"

namespace kumo {
namespace {

struct SurveyArguments {
  std::string file;
  std::vector<std::string> sets;
};

CommandLine DescribeSurvey(SurveyArguments& arguments) {
  CommandLine line("kumo-data survey",
                   "Reads all samples of an experiment, for kumo check --data, and prints one JSON "
                   "object:\nthe damaged samples, and the images that are in both sets.");
  line.AddPositional("FILE", "Experiment file, or the name of an installed experiment", true,
                     [&](const std::string& text) {
                       arguments.file = FindExperiment(text, FindInstallation().share);
                     });
  line.AddRepeated("set", "SECTION.KEY=VALUE", "Override a setting of the file; repeatable",
                   &arguments.sets);
  line.AddNote(
      "Exit codes: 0 done, also if samples are damaged; 64 wrong command line; others: "
      "the data cannot\nbe opened, and the JSON object has the error.");
  return line;
}

JsonFields SetFields(const Dataset& dataset, const DataSummary& summary) {
  JsonArray damaged;
  for (const std::string& one : summary.damaged) damaged.Add(one);
  return JsonFields()
      .Add("name", dataset.name())
      .Add("samples", dataset.size())
      .Add("damaged", damaged);
}

Result<JsonFields> ReportOf(const SurveyArguments& arguments) {
  KUMO_ASSIGN_OR_RETURN(const Experiment experiment,
                        ParseExperiment(arguments.file, arguments.sets, VariablesOf(environ)));
  ReadingBar bar;
  KUMO_ASSIGN_OR_RETURN(
      const DataSurvey survey,
      SurveyData(experiment.data, [&](int64_t read, int64_t samples) { bar.Show(read, samples); }));
  JsonFields report;
  report.Add("train", SetFields(*survey.sets.train, survey.train))
      .Add("validation", SetFields(*survey.sets.validation, survey.validation));
  const Status damage = DamageIn(survey);
  if (!damage.ok()) report.Add("damage", damage.message());
  const std::string note = survey.NoteOfSharedImages();
  if (!note.empty()) report.Add("note", note);
  return report;
}

}  // namespace

int RunSurvey(std::span<const std::string> args) {
  SurveyArguments arguments;
  CommandLine line = DescribeSurvey(arguments);
  return RunForProgram("kumo-data survey", args, &line, [&] { return ReportOf(arguments); });
}

}  // namespace kumo
