// Health of a training: whether it has diverged, or gets nowhere, judged by its metric `loss` and
// by the metric `accuracy`. A job without the metric is not judged by it.
//
// Stateless functions; NewestSound blocks.
#pragma once

#include <optional>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// Takes the last round of a job's progress into the first and the lowest loss of a round.
void NoteLoss(const MetricList& metrics, checkpoint::Progress* progress);

// Why the weights of a checkpoint are of no use to train on: a weight or the loss of the last round
// is not finite, or that loss is above the first one and a thousand times the lowest one. "": none
// of these.
std::string DivergenceOf(const checkpoint::Manifest& manifest, const MetricList& metrics);

// Sums of one epoch, over the training and the validation set.
struct EpochSums {
  int epoch = 0;  // counted from 1
  MetricSums train, validation;
};
// Why a training gets nowhere at the end of an epoch, with advice; "": it gets somewhere, or it is
// too early to say. classes: that the network tells apart; 0: not a classification. last: the job's
// last epoch.
std::string TroubleOf(const EpochSums& sums, const checkpoint::Progress& progress,
                      const MetricList& metrics, int classes, bool last);

// The newest checkpoint in a folder that verifies and has not diverged. NotFound if there is none.
Result<checkpoint::Manifest> NewestSound(FileSystem& files, const std::string& folder);

}  // namespace kumo
