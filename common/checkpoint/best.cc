#include "common/checkpoint/best.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/printable.h"
#include "common/checkpoint/checkpoint.h"

namespace kumo {

MetricList MetricsOf(const checkpoint::Manifest& manifest) {
  Result<MetricList> metrics = ParseMetrics(manifest.metrics());
  return metrics.ok() ? *std::move(metrics) : MetricList();
}

std::optional<double> ScoreOf(const checkpoint::Manifest& manifest, std::string_view by) {
  const MetricList metrics = MetricsOf(manifest);
  const Metric* const metric = metrics.Find(by);
  if (metric == nullptr) return std::nullopt;
  const auto figure = MetricList::FigureOf(*metric, ReadSums(manifest.evaluation().sums()));
  if (!figure || !std::isfinite(*figure)) return std::nullopt;
  return metric->more_is_better ? *figure : -*figure;
}

std::optional<MetricFigure> HeadlineOf(const checkpoint::Manifest& manifest) {
  return MetricsOf(manifest).Headline(ReadSums(manifest.evaluation().sums()));
}

std::string DescribeEvaluation(const checkpoint::Manifest& manifest) {
  const std::optional<MetricFigure> headline = HeadlineOf(manifest);
  std::string text = "epoch " + std::to_string(manifest.evaluation().epoch());
  if (headline) text += ", validation " + Described(*headline);
  const MetricSums sums = ReadSums(manifest.evaluation().sums());
  for (const MetricFigure& figure : MetricsOf(manifest).FiguresOf(sums)) {
    if (!headline || figure.name != headline->name) text += ", " + Described(figure);
  }
  return text;
}

Result<Contenders> ContendersForBest(FileSystem& files, const std::string& folder,
                                     std::span<const std::string> names, std::string_view by) {
  Contenders contenders;
  if (by.empty()) return contenders;
  for (const std::string& name : names) {
    Result<checkpoint::Manifest> manifest = ReadManifest(files, folder, name);
    if (!manifest.ok()) {
      const StatusCode code = manifest.status().code();
      if (code == StatusCode::kUnavailable || code == StatusCode::kResourceExhausted) {
        return manifest.status();
      }
      continue;
    }
    const checkpoint::Evaluation& evaluation = manifest->evaluation();
    const bool waits = evaluation.epoch() > 0 && evaluation.sums().samples() == 0;
    if (waits && !contenders.waiting) contenders.waiting = *manifest;
    const auto score = ScoreOf(*manifest, by);
    if (!score) continue;
    const auto& best = contenders.best;
    if (!best || *score >= *ScoreOf(*best, by)) {
      contenders.best = *std::move(manifest);
    }
  }
  return contenders;
}

Result<checkpoint::Manifest> FindBest(FileSystem& files, const std::string& folder,
                                      std::string_view by) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  KUMO_ASSIGN_OR_RETURN(Contenders contenders, ContendersForBest(files, folder, names, by));
  if (contenders.best) return *std::move(contenders.best);
  std::string figures = "validation figures: none was saved at the end of an epoch and evaluated";
  for (const std::string& name : names) {
    const Result<checkpoint::Manifest> manifest = ReadManifest(files, folder, name);
    if (!manifest.ok() || by.empty()) continue;
    const MetricList metrics = MetricsOf(*manifest);
    if (metrics.Find(by) != nullptr) break;
    figures = "a validation figure '" + Printable(by) + "': " + name + " has " + metrics.Names();
    break;
  }
  return NotFound("no checkpoint in " + folder + " has " + figures);
}

Status WriteEvaluation(FileSystem& files, const std::string& folder, int64_t version,
                       uint32_t since, const checkpoint::Evaluation& evaluation) {
  Result<checkpoint::Manifest> manifest = ReadManifest(files, folder, CheckpointName(version));
  if (!manifest.ok()) {
    return manifest.status().code() == StatusCode::kNotFound ? OkStatus() : manifest.status();
  }
  if (manifest->generation() < since) return OkStatus();
  if (manifest->evaluation().SerializeAsString() == evaluation.SerializeAsString()) {
    return OkStatus();
  }
  *manifest->mutable_evaluation() = evaluation;
  return WriteManifest(files, folder, *manifest);
}

}  // namespace kumo
