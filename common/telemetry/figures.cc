#include "common/telemetry/figures.h"

namespace kumo {
namespace {

using Figures = google::protobuf::RepeatedPtrField<wire::JobStatus::Figure>;

std::vector<MetricFigure> In(const Figures& figures) {
  std::vector<MetricFigure> all;
  for (const wire::JobStatus::Figure& figure : figures) {
    if (!FindFigure(all, figure.name())) all.push_back({figure.name(), figure.value()});
  }
  return all;
}

}  // namespace

std::vector<MetricFigure> FiguresOf(const wire::JobStatus& status) { return In(status.figures()); }

std::vector<MetricFigure> ValidationFiguresOf(const wire::JobStatus& status) {
  return In(status.validation_figures());
}

}  // namespace kumo
