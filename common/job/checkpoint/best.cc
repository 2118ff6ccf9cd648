#include "common/job/checkpoint/best.h"

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/job/checkpoint/checkpoint.h"

namespace kumo {

std::optional<double> ScoreOf(const checkpoint::Evaluation& evaluation, std::string_view by) {
  if (evaluation.samples() <= 0) return std::nullopt;
  const auto samples = static_cast<double>(evaluation.samples());
  if (by == "accuracy") return static_cast<double>(evaluation.correct()) / samples;
  if (by == "loss" && std::isfinite(evaluation.loss_sum())) return -evaluation.loss_sum() / samples;
  return std::nullopt;
}

std::string DescribeEvaluation(const checkpoint::Evaluation& evaluation) {
  const auto samples = static_cast<double>(evaluation.samples());
  char text[96];
  std::snprintf(text, sizeof(text), "epoch %d, validation accuracy %.4f, loss %.4f",
                evaluation.epoch(), static_cast<double>(evaluation.correct()) / samples,
                evaluation.loss_sum() / samples);
  return text;
}

Result<Contenders> ContendersForBest(FileSystem& files, const std::string& folder,
                                     std::span<const std::string> names, std::string_view by) {
  Contenders contenders;
  if (by == "none") return contenders;
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
    const bool waits = evaluation.epoch() > 0 && evaluation.samples() == 0;
    if (waits && !contenders.waiting) contenders.waiting = *manifest;
    const auto score = ScoreOf(evaluation, by);
    if (!score) continue;
    const auto& best = contenders.best;
    if (!best || *score >= *ScoreOf(best->evaluation(), by)) {
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
  return NotFound("no checkpoint in " + folder + " has validation figures");
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
