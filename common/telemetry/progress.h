// Progress of a job and its text forms: a line, a bar, or a row of the epoch table. ProgressView
// (console.h) prints them.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/metric_list.h"

namespace kumo {

// State of a job at one moment, as its coordinator sees it. Unknown values are absent.
struct RoundProgress {
  int64_t round = 0;  // closed rounds so far
  int64_t rounds = 0;
  int64_t samples = 0;  // trained so far, all epochs together
  int64_t total_samples = 0;
  int epoch = 1;  // the current one, counted from 1
  int epochs = 1;
  std::vector<MetricFigure> figures;  // of the last round
  std::optional<double> learning_rate;
  std::optional<double> samples_per_second;  // of all workers together
  std::optional<double> compute_ms;          // of the last round, mean over the workers
  std::optional<double> wait_ms;
  std::optional<double> network_ms;
  uint64_t bytes_sent = 0;  // by all workers since the start
  uint64_t bytes_received = 0;
  int workers = 0;
  std::optional<std::string> slowest;  // the worker that the others wait for
  struct Silent {
    std::string worker;
    double seconds = 0;
  };
  std::vector<Silent> silent;  // workers that may be dead, longest silence first
  double elapsed_seconds = 0;
  std::optional<double> eta_seconds;
};

// A point of the curves. Equal runs have equal points, except for the time.
struct CurvePoint {
  int64_t round = 0;  // closed rounds
  int64_t samples = 0;
  int epoch = 1;                        // of its last round, counted from 1
  std::vector<MetricFigure> figures;    // of the rounds since the previous point
  std::optional<double> learning_rate;  // of its last round
  double elapsed_seconds = 0;
};

// Results of one epoch.
struct EpochResult {
  int epoch = 1;                         // counted from 1
  int64_t round = 0;                     // closed rounds at its end
  int64_t samples = 0;                   // trained until its end
  std::vector<MetricFigure> figures;     // of the epoch's training samples
  std::vector<MetricFigure> validation;  // empty if the epoch was not evaluated
  std::vector<MetricFigure> classes;     // of the validation: "map/cat", for files alone
  std::vector<std::string> evaluated;    // metrics that only evaluations have, as map
  double elapsed_seconds = 0;
};

// "round 812/9380  epoch 2/20  loss 0.1832  ...  ETA 3 min 20 s", without line end. Unknown values
// are left out, except that an unknown ETA is "-".
std::string FormatProgressLine(const RoundProgress& progress);

// The same in at most `width` columns: "[>          ]   8.7%  round 812/9380 ..."; bar and
// percentage count samples. Fields that do not fit are left out, the least important first.
std::string FormatProgressBar(const RoundProgress& progress, int width);

// ChainerMN's table (chainer.training.extensions.PrintReport): left-aligned columns of fixed width,
// two blanks apart, six digits, blank without a value. Each metric of training has two columns,
// each that only evaluations have one; `result` defines the metrics. If the table exceeds `width`
// (0: unlimited), validation names take two lines, so that 80 columns hold two metrics; further
// columns that do not fit are left out, the last metric's first, and training before validation.
std::string FormatEpochTableHeader(const EpochResult& result, int width = 0);
std::string FormatEpochTableRow(const EpochResult& result, int width = 0);

}  // namespace kumo
