#include <algorithm>

#include "cli/new/task.h"

namespace kumo {
namespace {

// Samples that a run visits at least; BCCD needs 15,000.
constexpr int64_t kDetectorVisits = 20'000;
constexpr int64_t kEvaluations = 12;  // of a run

bool FitsDetector(const DescribedData& data) { return data.objects > 0; }

int64_t EpochsOfDetector(int64_t samples) { return EpochsFor(kDetectorVisits, samples, 10, 200); }

// As bccd_ssd300_slim.
void SetDetectorTraining(const DescribedData& /*data*/, int64_t epochs, ExperimentLines* lines) {
  lines->Section("sync");
  lines->Set("mode", "gradient");
  lines->Set("partitions", kNewPartitions, "workers that can share the work");
  lines->Set("minibatch", "8", "16 images a round");
  lines->Section("optimiser");
  lines->Set("type", "adamw");
  lines->Set("weight_decay", "0.0005");
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", "0.001");
  lines->Section("evaluation");
  lines->Set("every_epochs", std::max<int64_t>(1, epochs / kEvaluations));
  lines->Set("minibatch", "8");
  lines->Section("checkpoint");
  lines->Set("best", "map", "mean average precision");
}

}  // namespace

// The model takes the number of classes from the data, and images of 300 x 300.
const NewTask kDetectorTask = {.fits = FitsDetector,
                               .model = "bccd_ssd300_slim",
                               .scaling = "whole images are scaled, with their boxes",
                               .epochs = EpochsOfDetector,
                               .set_training = SetDetectorTraining};

}  // namespace kumo
