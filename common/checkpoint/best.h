// Which checkpoint is the best: what the validation set said of the weights stands in the
// manifests, and nowhere else, so that whatever a crash leaves, the best one is that of the
// checkpoints which are there.
//
// `by` is checkpoint.best: the name of a metric, or "" for no metric. Functions
// without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/job/metric_list.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// The metrics that a manifest's sums are of.
MetricList MetricsOf(const checkpoint::Manifest& manifest);
// More is better: the metric's figure, below zero where less of it is better. None where there is
// no evaluation yet, where the figure is not finite, and where the job had no such metric.
std::optional<double> ScoreOf(const checkpoint::Manifest& manifest, std::string_view by);
// What the evaluation is told by where there is room for one figure; none where there is no
// evaluation yet.
std::optional<MetricFigure> HeadlineOf(const checkpoint::Manifest& manifest);
// "epoch 7, validation accuracy 0.9931, loss 0.0231".
std::string DescribeEvaluation(const checkpoint::Manifest& manifest);

struct Contenders {
  std::optional<checkpoint::Manifest> best;     // of equal ones the earliest
  std::optional<checkpoint::Manifest> waiting;  // the newest whose evaluation is still to come
};
// Of the checkpoints `names`, newest first; those whose manifest cannot be read do not count. None
// by "". One that cannot be read just now is an error: it may be the best.
Result<Contenders> ContendersForBest(FileSystem& files, const std::string& folder,
                                     std::span<const std::string> names, std::string_view by);

// The best checkpoint in a folder. NotFound when none was evaluated, and by "".
Result<checkpoint::Manifest> FindBest(FileSystem& files, const std::string& folder,
                                      std::string_view by);

// Writes an evaluation into the manifest of a version, in one step; does nothing where there is
// none of generation `since` or a later one, and where it says so already. Blocks.
Status WriteEvaluation(FileSystem& files, const std::string& folder, int64_t version,
                       uint32_t since, const checkpoint::Evaluation& evaluation);

}  // namespace kumo
