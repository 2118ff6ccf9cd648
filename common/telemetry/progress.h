// How far a job is, and how that looks: a line, a bar, a row of the epochs' table. Facts in, text
// out; who prints it is ProgressView's business (console.h).
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kumo {

// A job at one moment, as its coordinator sees it. Losses and accuracies are means over samples.
struct RoundProgress {
  int64_t round = 0;  // closed rounds so far
  int64_t rounds = 0;
  int epoch = 1;  // the one that is being trained, counted from 1
  int epochs = 1;
  double loss = 0;
  double accuracy = 0;  // 0 .. 1
  double learning_rate = 0;
  double samples_per_second = 0;  // of all workers together
  double compute_ms = 0;          // of the last round, mean over the workers
  double wait_ms = 0;
  double network_ms = 0;
  uint64_t bytes_sent = 0;  // by all workers since the start
  uint64_t bytes_received = 0;
  int workers = 0;
  std::string slowest;  // the worker that the others wait for; empty when there is none
  double elapsed_seconds = 0;
  std::optional<double> eta_seconds;
};

// One epoch's results.
struct EpochResult {
  int epoch = 1;      // counted from 1
  int64_t round = 0;  // closed rounds at its end
  double loss = 0;
  double accuracy = 0;
  std::optional<double> validation_loss;  // none when this epoch was not evaluated
  std::optional<double> validation_accuracy;
  double elapsed_seconds = 0;
};

// "round 812/9380  epoch 2/20  loss 0.1832  ...  ETA 3 min 20 s", without a line end.
std::string FormatProgressLine(const RoundProgress& progress);

// The same in at most `width` columns: "[>          ]   8.7%  round 812/9380 ...". What does not
// fit is left out, the least important first.
std::string FormatProgressBar(const RoundProgress& progress, int width);

// ChainerMN's table (chainer.training.extensions.PrintReport): columns of a fixed width, aligned to
// the left, two blanks apart, numbers with six digits, blank where there is no value.
std::string FormatEpochTableHeader();
std::string FormatEpochTableRow(const EpochResult& result);

}  // namespace kumo
