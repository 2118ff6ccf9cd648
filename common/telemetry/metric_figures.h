// What the figures of a job's metrics are called wherever they are seen, and those that a job's
// status has.
//
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/job/metric_list.h"
#include "proto/wire.pb.h"

namespace kumo {

// "main/loss": of training samples.
inline std::string MainFigure(std::string_view metric) { return "main/" + std::string(metric); }
// "validation/main/loss": of the validation set.
inline std::string ValidationFigure(std::string_view metric) {
  return "validation/main/" + std::string(metric);
}

// Of training samples, of the last round. The status may come from a peer: a name that is there
// twice counts once.
std::vector<MetricFigure> FiguresOf(const wire::JobStatus& status);
// Of the validation set, after the last epoch that was evaluated; likewise.
std::vector<MetricFigure> ValidationFiguresOf(const wire::JobStatus& status);

}  // namespace kumo
