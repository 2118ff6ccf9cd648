// Precisions of each class of a detector (`kumo evaluate --classes`): in the means of an
// evaluation, often classes and rare ones weigh the same. Pure functions.
#pragma once

#include <span>
#include <string>

#include "common/base/json.h"
#include "common/detection/average_precision.h"
#include "common/job/metric_list.h"

namespace kumo {

// A table with a row for each class with objects and a column for each precision among `metrics`.
// names: by class; empty: none.
std::string PrecisionsText(const MetricList& metrics, const DetectionCounts& counts,
                           std::span<const std::string> names);
// The field `classes`, an object for each class with objects: "class", "name" if it has one, and
// the precisions by their metrics' names.
void AddPrecisions(const MetricList& metrics, const DetectionCounts& counts,
                   std::span<const std::string> names, JsonFields* fields);

}  // namespace kumo
