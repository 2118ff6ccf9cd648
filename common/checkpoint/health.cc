#include "common/checkpoint/health.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

constexpr double kDivergedBy = 1000;  // times the lowest loss
constexpr double kGrownBy = 1.5;      // times the first loss
constexpr char kAdvice[] = "; a lower schedule.learning_rate usually helps";

// "1.39", "7.2e+27": a diverged loss has any number of digits.
std::string Shown(double figure) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", figure);
  return text;
}

std::optional<double> Figure(const MetricList& metrics, const MetricSums& sums, const char* name) {
  const Metric* const metric = metrics.Find(name);
  return metric == nullptr ? std::nullopt : MetricList::FigureOf(*metric, sums);
}

std::string Divergence(const checkpoint::Progress& progress, const MetricList& metrics) {
  const auto loss = Figure(metrics, ReadSums(progress.last()), "loss");
  if (!loss) return "";
  if (!std::isfinite(*loss)) return "the loss is not finite";
  if (!progress.has_lowest_loss() || progress.lowest_loss() <= 0) return "";
  if (*loss <= progress.first_loss() || *loss < kDivergedBy * progress.lowest_loss()) return "";
  return "the loss is " + Shown(*loss) + ", but was " + Shown(progress.lowest_loss());
}

// Three standard deviations above the share of right answers of a guess. So few samples that they
// reach an accuracy of 1 do not tell.
bool IsAtChance(const std::optional<double>& accuracy, int64_t samples, int classes) {
  if (!accuracy || samples <= 0) return false;
  const double chance = 1.0 / classes;
  const double bound = chance + 3 * std::sqrt(chance * (1 - chance) / static_cast<double>(samples));
  return bound < 1 && *accuracy <= bound;
}

}  // namespace

void NoteLoss(const MetricList& metrics, checkpoint::Progress* progress) {
  const auto loss = Figure(metrics, ReadSums(progress->last()), "loss");
  if (!loss || !std::isfinite(*loss)) return;
  if (!progress->has_first_loss()) progress->set_first_loss(*loss);
  if (!progress->has_lowest_loss() || *loss < progress->lowest_loss()) {
    progress->set_lowest_loss(*loss);
  }
}

std::string DivergenceOf(const checkpoint::Manifest& manifest, const MetricList& metrics) {
  for (const checkpoint::File& file : manifest.files()) {
    if (file.not_finite()) return "a weight is not finite";
  }
  return Divergence(manifest.progress(), metrics);
}

std::string TroubleOf(const EpochSums& sums, const checkpoint::Progress& progress,
                      const MetricList& metrics, int classes, bool last) {
  if (const std::string why = Divergence(progress, metrics); !why.empty()) return why + kAdvice;
  const auto loss = Figure(metrics, sums.train, "loss");
  if (loss && progress.has_first_loss() && progress.first_loss() > 0 &&
      *loss > kGrownBy * progress.first_loss()) {
    return "the loss has grown from " + Shown(progress.first_loss()) + " in the first round to " +
           Shown(*loss) + " in epoch " + std::to_string(sums.epoch) + kAdvice;
  }
  // A first epoch may be too short to learn anything.
  if (classes < 2 || (sums.epoch < 2 && !last)) return "";
  const auto accuracy = Figure(metrics, sums.train, "accuracy");
  if (!IsAtChance(accuracy, sums.train.samples, classes)) return "";
  const auto validation = Figure(metrics, sums.validation, "accuracy");
  if (validation && !IsAtChance(validation, sums.validation.samples, classes)) return "";
  return "after epoch " + std::to_string(sums.epoch) + " the accuracy is " + Shown(*accuracy) +
         ", like random guesses among " + std::to_string(classes) +
         " classes: the network has learned nothing; try another schedule.learning_rate, look at "
         "the images and labels, or use batch normalisation";
}

Result<checkpoint::Manifest> NewestSound(FileSystem& files, const std::string& folder) {
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, folder));
  for (const std::string& name : names) {
    Result<checkpoint::Manifest> manifest = VerifyCheckpoint(files, folder, name);
    if (manifest.ok() && manifest->diverged().empty()) return manifest;
  }
  return NotFound("there is no usable checkpoint in " + folder);
}

}  // namespace kumo
