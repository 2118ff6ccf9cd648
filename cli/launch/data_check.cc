#include "cli/launch/data_check.h"

#include <utility>

#include "cli/launch/child_process.h"
#include "cli/launch/json_answer.h"

namespace kumo {
namespace {

// A set of the survey's report; appends its damaged samples to *damaged.
std::string SetIn(const JsonAnswer& report, const std::string& name,
                  std::vector<std::string>* damaged) {
  if (!report.Has(name)) return "";
  const JsonAnswer set = report.Object(name);
  for (std::string& one : set.Texts("damaged")) damaged->push_back(std::move(one));
  return std::to_string(set.Count("samples")) + " samples of " + set.Text("name");
}

}  // namespace

std::vector<std::string> CheckData(const JobArguments& args, const PlannedJob& job,
                                   Preflight* result) {
  if (job.loaded.experiment.worker.OwnsModel()) {
    result->notes.push_back("--data reads nothing: the program of worker.command has the data");
    return {};
  }
  ChildSpec spec;
  spec.command = args.experiment.Forward();
  spec.command.insert(spec.command.begin(), {args.experiment.Binary("kumo-data"), "survey"});
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  spec.shows_errors = true;
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  if (!end.ok()) {
    result->problems.push_back(end.status());
    return {};
  }
  const JsonAnswer report(output);
  if (!report.read() || end->code != 0) {
    result->problems.push_back(ErrorOf("kumo-data survey", *end, report.Text("error")));
    return {};
  }
  std::vector<std::string> damaged;
  const std::string train = SetIn(report, "train", &damaged);
  const std::string validation = SetIn(report, "validation", &damaged);
  if (const std::string note = report.Text("note"); !note.empty()) {
    result->notes.push_back(note);
  }
  if (damaged.empty()) {
    result->passed.push_back("data: all " + train + " can be read");
    result->passed.push_back("data: all " + validation + " can be read");
  } else if (job.loaded.experiment.data.damaged == DamagedImages::kSkip) {
    result->notes.push_back(std::to_string(damaged.size()) +
                            " images are damaged (listed above); the next image takes the place of "
                            "each (data.damaged = skip)");
  } else {
    result->problems.push_back(DataLoss(report.Text("damage")));
  }
  return damaged;
}

}  // namespace kumo
