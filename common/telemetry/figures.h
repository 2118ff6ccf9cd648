// Names of a job's figures in all outputs: `kumo status` (text and --json), log.jsonl, TensorBoard
// and the epoch table. ChainerMN's names are used if it has one. docs/formats.md has the same list.
//
// Constants.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/metric_list.h"
#include "proto/wire.pb.h"

namespace kumo {

struct Figure {
  std::string_view name;
  std::string_view meaning;
  // A figure converts to its name.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator std::string_view() const { return name; }
};

namespace figure {

inline constexpr Figure kRound{"round", "closed rounds so far"};
inline constexpr Figure kRounds{"rounds", "rounds of the whole job"};
inline constexpr Figure kEpoch{"epoch", "the epoch that is trained, or that ended; counted from 1"};
inline constexpr Figure kEpochs{"epochs", "epochs of the whole job"};
inline constexpr Figure kSamples{"samples", "samples trained so far, all epochs together"};
inline constexpr Figure kTotalSamples{"total_samples", "samples of the whole job"};
inline constexpr Figure kLoss{"main/loss", "mean loss of training samples"};
inline constexpr Figure kAccuracy{"main/accuracy", "share of training samples that were right"};
inline constexpr Figure kValidationLoss{"validation/main/loss",
                                        "mean loss of the validation set after an epoch"};
inline constexpr Figure kValidationAccuracy{"validation/main/accuracy",
                                            "share of the validation set that was right"};
inline constexpr Figure kLearningRate{
    "lr", "learning rate of the round that is trained; of a point its last round's"};
inline constexpr Figure kElapsedTime{"elapsed_time", "seconds of the job, earlier runs included"};
inline constexpr Figure kEta{"eta", "seconds to the job's end, at the rate of the last minute"};
inline constexpr Figure kSamplesPerSecond{
    "samples_per_second", "of all workers together, waits included; in a worker's row its own"};
inline constexpr Figure kCompute{"compute_ms",
                                 "training of the last block; of a job the mean over its workers"};
inline constexpr Figure kWait{
    "wait_ms", "from the last acknowledgement to the next version's first chunk; likewise"};
inline constexpr Figure kNetwork{
    "network_ms",
    "encoding, pushing until the last acknowledgement, and from the next version's first chunk to "
    "its last; likewise"};
inline constexpr Figure kBytesSent{"bytes_sent", "by the workers since they started"};
inline constexpr Figure kBytesReceived{"bytes_received", "by the workers since they started"};
inline constexpr Figure kWorkers{"workers", "workers that take part"};
inline constexpr Figure kSlowest{"slowest", "of several workers the one that was busy longest"};
inline constexpr Figure kSilent{
    "silent", "workers, or seconds of one process, without a sign of life for some heartbeats"};

inline constexpr std::array kAll = {
    kRound,        kRounds,      kEpoch,     kEpochs,           kSamples,
    kTotalSamples, kLoss,        kAccuracy,  kValidationLoss,   kValidationAccuracy,
    kLearningRate, kElapsedTime, kEta,       kSamplesPerSecond, kCompute,
    kWait,         kNetwork,     kBytesSent, kBytesReceived,    kWorkers,
    kSlowest,      kSilent,
};

}  // namespace figure

// The figure of a metric over training samples: "main/loss".
inline std::string MainFigure(std::string_view metric) { return "main/" + std::string(metric); }
// The figure of a metric over the validation set: "validation/main/loss".
inline std::string ValidationFigure(std::string_view metric) {
  return "validation/main/" + std::string(metric);
}

// The training figures of the last round. The status may come from a peer: of repeated names one
// counts.
std::vector<MetricFigure> FiguresOf(const wire::JobStatus& status);
// The validation figures after the last evaluated epoch; repeated names likewise.
std::vector<MetricFigure> ValidationFiguresOf(const wire::JobStatus& status);

}  // namespace kumo
