// Which checkpoint is the best: what the validation set said of the weights stands in the
// manifests, and nowhere else, so that whatever a crash leaves, the best one is that of the
// checkpoints which are there.
//
// `by` is checkpoint.best: "accuracy", "loss", or "none". Functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/file.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// More is better: the accuracy, or the mean loss below zero. None where there is no evaluation yet,
// where its loss is not finite, and by "none".
std::optional<double> ScoreOf(const checkpoint::Evaluation& evaluation, std::string_view by);
// "epoch 7, validation accuracy 0.9931, loss 0.0231".
std::string DescribeEvaluation(const checkpoint::Evaluation& evaluation);

struct Contenders {
  std::optional<checkpoint::Manifest> best;     // of equal ones the earliest
  std::optional<checkpoint::Manifest> waiting;  // the newest whose evaluation is still to come
};
// Of the checkpoints `names`, newest first; those whose manifest cannot be read do not count. None
// by "none". One that cannot be read just now is an error: it may be the best.
Result<Contenders> ContendersForBest(FileSystem& files, const std::string& folder,
                                     std::span<const std::string> names, std::string_view by);

// The best checkpoint in a folder. NotFound when none was evaluated, and by "none".
Result<checkpoint::Manifest> FindBest(FileSystem& files, const std::string& folder,
                                      std::string_view by);

// Writes an evaluation into the manifest of a version, in one step; does nothing where there is
// none of generation `since` or a later one, and where it says so already. Blocks.
Status WriteEvaluation(FileSystem& files, const std::string& folder, int64_t version,
                       uint32_t since, const checkpoint::Evaluation& evaluation);

}  // namespace kumo
