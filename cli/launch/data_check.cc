#include "cli/launch/data_check.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "cli/launch/child_process.h"

namespace kumo {
namespace {

using google::protobuf::Struct;

const google::protobuf::Value* ValueIn(const Struct& object, const std::string& name) {
  const auto field = object.fields().find(name);
  return field == object.fields().end() ? nullptr : &field->second;
}

std::string TextIn(const Struct& object, const std::string& name) {
  const auto* value = ValueIn(object, name);
  return value == nullptr ? "" : value->string_value();
}

// A set of the survey's report; appends its damaged samples to *damaged.
std::string SetIn(const Struct& report, const std::string& name,
                  std::vector<std::string>* damaged) {
  const auto* set = ValueIn(report, name);
  if (set == nullptr) return "";
  const Struct& object = set->struct_value();
  if (const auto* list = ValueIn(object, "damaged"); list != nullptr) {
    for (const auto& one : list->list_value().values()) damaged->push_back(one.string_value());
  }
  const auto* samples = ValueIn(object, "samples");
  const double count = samples == nullptr ? 0 : samples->number_value();
  return std::to_string(static_cast<int64_t>(count)) + " samples of " + TextIn(object, "name");
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
  Struct report;
  const bool read = google::protobuf::util::JsonStringToMessage(output, &report).ok();
  if (!read || end->code != 0) {
    const std::string error = read ? TextIn(report, "error") : "";
    result->problems.push_back(ErrorOf("kumo-data survey", *end, error));
    return {};
  }
  std::vector<std::string> damaged;
  const std::string train = SetIn(report, "train", &damaged);
  const std::string validation = SetIn(report, "validation", &damaged);
  if (const std::string note = TextIn(report, "note"); !note.empty()) {
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
    result->problems.push_back(DataLoss(TextIn(report, "damage")));
  }
  return damaged;
}

}  // namespace kumo
