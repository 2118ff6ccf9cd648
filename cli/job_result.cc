#include "cli/job_result.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "common/job/checkpoint/checkpoint.h"
#include "common/job/telemetry/figures.h"

namespace kumo {
namespace {

// "0.9938" of a number in the object; "" where there is none.
std::string NumberOf(const google::protobuf::Struct& object, const Figure& figure,
                     const char* format) {
  const auto field = object.fields().find(std::string(figure.name));
  if (field == object.fields().end() || !field->second.has_number_value()) return "";
  char text[64];
  std::snprintf(text, sizeof(text), format, field->second.number_value());
  return text;
}

std::string Described(const google::protobuf::Struct& figures) {
  std::string text = "epoch " + NumberOf(figures, figure::kEpoch, "%.0f");
  const std::pair<const Figure&, const char*> told[] = {
      {figure::kValidationAccuracy, ", validation accuracy "},
      {figure::kAccuracy, ", training accuracy "},
      {figure::kValidationLoss, ", validation loss "},  // of networks that have no accuracy
      {figure::kLoss, ", training loss "}};
  for (const auto& [figure, words] : told) {
    const std::string number = NumberOf(figures, figure, "%.4f");
    if (!number.empty()) return text + words + number;
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
