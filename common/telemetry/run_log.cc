#include "common/telemetry/run_log.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "common/base/json.h"
#include "common/telemetry/figures.h"
#include "common/telemetry/log_lines.h"

namespace kumo {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// A field that is no figure.
constexpr std::string_view kWallTime = "wall_time";

bool IsOfKind(const std::string& line, std::string_view kind) {
  return line.find("\"kind\":\"" + std::string(kind) + "\"") != std::string::npos;
}

std::optional<Struct> Parsed(const std::string& line) {
  Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) return std::nullopt;
  return object;
}

RunLog::Figures FiguresIn(const Struct& object) {
  RunLog::Figures figures;
  for (const auto& [name, value] : object.fields()) {
    if (value.has_number_value() && name != kWallTime) figures.emplace(name, value.number_value());
  }
  return figures;
}

std::string TextOf(const Value& value) {
  if (value.has_bool_value()) return value.bool_value() ? "true" : "false";
  return value.has_number_value() ? ToJson(value.number_value()) : value.string_value();
}

// Takes the settings of a run's start, or their changes: arrays of the old and the new value.
void TakeSettings(const Struct& object, std::map<std::string, std::string>* settings) {
  const auto all = object.fields().find("settings");
  if (all != object.fields().end()) {
    for (const auto& [key, value] : all->second.struct_value().fields()) {
      (*settings)[key] = TextOf(value);
    }
  }
  const auto changes = object.fields().find("changes");
  if (changes == object.fields().end()) return;
  for (const auto& [key, values] : changes->second.struct_value().fields()) {
    if (values.list_value().values_size() == 2) {
      (*settings)[key] = TextOf(values.list_value().values(1));
    }
  }
}

// Takes the metrics of a run's start.
void TakeMetrics(const Struct& object, std::vector<RankedMetric>* metrics) {
  const auto all = object.fields().find("metrics");
  if (all == object.fields().end()) return;
  metrics->clear();
  for (const Value& one : all->second.list_value().values()) {
    const auto& fields = one.struct_value().fields();
    const auto name = fields.find("name");
    const auto more = fields.find("more_is_better");
    if (name == fields.end() || more == fields.end()) continue;
    metrics->push_back({name->second.string_value(), more->second.bool_value()});
  }
}

}  // namespace

Result<RunLog> ReadRunLog(FileSystem& files, const std::string& path) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  RunLog log;
  std::map<double, RunLog::Figures> epochs;
  std::string point, progress;
  const Status read = ForEachLogLine(file.get(), [&](const std::string& line) {
    if (IsOfKind(line, "progress")) progress = line;
    if (IsOfKind(line, "point")) point = line;
    if (IsOfKind(line, "settings") || IsOfKind(line, "continued")) {
      if (const auto object = Parsed(line)) {
        TakeSettings(*object, &log.settings);
        TakeMetrics(*object, &log.metrics);
      }
    }
    if (!IsOfKind(line, "epoch")) return OkStatus();
    const std::optional<Struct> object = Parsed(line);
    if (!object) return OkStatus();
    log.last_epoch = line;
    RunLog::Figures figures = FiguresIn(*object);
    // If an epoch was evaluated twice, its last line counts.
    epochs[figures[std::string(figure::kEpoch)]] = std::move(figures);
    return OkStatus();
  });
  KUMO_RETURN_IF_ERROR(read);
  std::vector<RunLog::Figures> lines;
  // In this order: at the end of an epoch its means say more than the last point's.
  for (const std::string& line : {progress, point, log.last_epoch}) {
    if (const auto object = Parsed(line)) lines.push_back(FiguresIn(*object));
  }
  const auto round_of = [](const RunLog::Figures& figures) {
    const auto round = figures.find(std::string(figure::kRound));
    return round == figures.end() ? 0 : round->second;
  };
  std::ranges::stable_sort(lines, {}, round_of);
  for (const RunLog::Figures& line : lines) {
    for (const auto& [name, value] : line) log.newest[name] = value;
  }
  for (auto& [epoch, figures] : epochs) log.epochs.push_back(std::move(figures));
  return log;
}

}  // namespace kumo
