#include "cli/job_result.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

#include "common/checkpoint/checkpoint.h"
#include "common/job/metric_list.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

// Of a number in the object; none where there is no such.
std::optional<double> NumberOf(const google::protobuf::Struct& object, const Figure& figure) {
  const auto field = object.fields().find(std::string(figure.name));
  if (field == object.fields().end() || !field->second.has_number_value()) return std::nullopt;
  return field->second.number_value();
}

std::string Described(const google::protobuf::Struct& figures) {
  std::string text = "epoch ";
  if (const auto epoch = NumberOf(figures, figure::kEpoch)) {
    text += std::to_string(static_cast<int64_t>(*epoch));
  }
  const std::pair<const Figure&, const char*> told[] = {
      {figure::kValidationAccuracy, ", validation accuracy "},
      {figure::kAccuracy, ", training accuracy "},
      {figure::kValidationLoss, ", validation loss "},  // of networks that have no accuracy
      {figure::kLoss, ", training loss "}};
  for (const auto& [figure, words] : told) {
    const auto number = NumberOf(figures, figure);
    if (number) return text + words + FigureText(*number);
  }
  return text;
}

// Sets figures and description.
void ReadLastEpoch(const std::string& path, JobResult* result) {
  std::ifstream log(path);
  std::string line, last;
  while (std::getline(log, line)) {
    if (line.find("\"kind\":\"epoch\"") != std::string::npos) last = line;
  }
  google::protobuf::Struct object;
  if (!google::protobuf::util::JsonStringToMessage(last, &object).ok()) return;
  result->figures = last;
  result->description = Described(object);
}

}  // namespace

JobResult ReadJobResult(FileSystem& files, const std::string& output_directory) {
  JobResult result;
  const std::string folder = JoinPath(output_directory, "checkpoints");
  const Result<std::string> latest = FindLatest(files, folder);
  if (latest.ok()) result.checkpoint = JoinPath(folder, *latest);
  ReadLastEpoch(JoinPath(output_directory, "log.jsonl"), &result);
  return result;
}

}  // namespace kumo
