// How far a job is, and how that looks: a line, a bar, a row of the epochs' table. Facts in, text
// out; who prints it is ProgressView's business (console.h).
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/metric_list.h"

namespace kumo {

// A job at one moment, as its coordinator sees it. What is not known is not there.
struct RoundProgress {
  int64_t round = 0;  // closed rounds so far
  int64_t rounds = 0;
  int64_t samples = 0;  // trained on so far, all epochs together
  int64_t total_samples = 0;
  int epoch = 1;  // the one that is being trained, counted from 1
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
  std::vector<Silent> silent;  // workers that may be dead, the longest silent one first
  double elapsed_seconds = 0;
  std::optional<double> eta_seconds;
};

// A point of the curves. Equal runs have equal ones, but for the time.
struct CurvePoint {
  int64_t round = 0;  // closed rounds at it
  int64_t samples = 0;
  int epoch = 1;                        // that its last round was in, counted from 1
  std::vector<MetricFigure> figures;    // of the rounds since the point before
  std::optional<double> learning_rate;  // of its last round
  double elapsed_seconds = 0;
};

// One epoch's results.
struct EpochResult {
  int epoch = 1;                         // counted from 1
  int64_t round = 0;                     // closed rounds at its end
  int64_t samples = 0;                   // likewise
  std::vector<MetricFigure> figures;     // of the epoch's training samples
  std::vector<MetricFigure> validation;  // none when this epoch was not evaluated
  double elapsed_seconds = 0;
};

// "round 812/9380  epoch 2/20  loss 0.1832  ...  ETA 3 min 20 s", without a line end. What is not
// known is left out; only the ETA is then "-".
std::string FormatProgressLine(const RoundProgress& progress);

// The same in at most `width` columns: "[>          ]   8.7%  round 812/9380 ..."; bar and percent
// are those of the samples. What does not fit is left out, the least important first.
std::string FormatProgressBar(const RoundProgress& progress, int width);

// ChainerMN's table (chainer.training.extensions.PrintReport): columns of a fixed width, aligned to
// the left, two blanks apart, numbers with six digits, blank where there is no value. Each metric
// has two columns. Where the table is wider than `width` (0: no limit), the names of the validation
// stand in two lines each, so that 80 columns are enough for two metrics; of more, those that do
// not fit are left out, the last one's first, those of training samples before those of the
// validation set. `result` says which metrics there are.
std::string FormatEpochTableHeader(const EpochResult& result, int width = 0);
std::string FormatEpochTableRow(const EpochResult& result, int width = 0);

}  // namespace kumo
