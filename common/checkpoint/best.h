// Best checkpoint: the one with the best validation metric (checkpoint.best). Evaluations are
// stored only in the manifests, so after any crash the best checkpoint is the best of the
// existing ones.
//
// `by` is checkpoint.best: the name of a metric, or "" for none. Stateless functions.
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

// The metrics that a manifest's sums belong to.
MetricList MetricsOf(const checkpoint::Manifest& manifest);
// The metric's figure, negated if smaller is better, so that larger scores are better. None without
// an evaluation, if the figure is not finite, or if the job has no such metric.
std::optional<double> ScoreOf(const checkpoint::Manifest& manifest, std::string_view by);
// The one figure that represents the evaluation; none without an evaluation.
std::optional<MetricFigure> HeadlineOf(const checkpoint::Manifest& manifest);
// "epoch 7, validation accuracy 0.9931, loss 0.0231".
std::string DescribeEvaluation(const checkpoint::Manifest& manifest);

struct Contenders {
  std::optional<checkpoint::Manifest> best;     // the earliest of equal ones
  std::optional<checkpoint::Manifest> waiting;  // the newest without its evaluation yet
};
// Searches the checkpoints `names`, newest first. Checkpoints with an invalid manifest are ignored;
// one that cannot be read now is an error, because it may be the best. Finds none by "".
Result<Contenders> ContendersForBest(FileSystem& files, const std::string& folder,
                                     std::span<const std::string> names, std::string_view by);

// The best checkpoint in a folder. NotFound if none was evaluated, and by "".
Result<checkpoint::Manifest> FindBest(FileSystem& files, const std::string& folder,
                                      std::string_view by);

// Atomically writes an evaluation into the manifest of a version. Does nothing if there is no such
// checkpoint of generation `since` or later, or if the evaluation is already there. Blocks.
Status WriteEvaluation(FileSystem& files, const std::string& folder, int64_t version,
                       uint32_t since, const checkpoint::Evaluation& evaluation);

}  // namespace kumo
