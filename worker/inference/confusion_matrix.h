// Confusion matrix: counts of (class, answer) over samples, or over their positions (pixels), and
// the figures of each class that follow from them.
//
// A value; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace kumo {

// Figures of one class; 0 if they would be a share of nothing.
struct ClassFigures {
  int64_t samples = 0;   // of the class
  int64_t answers = 0;   // samples that were taken for the class
  double precision = 0;  // share of the answers that are right
  double recall = 0;     // share of the samples that are recognised
  double f1 = 0;         // harmonic mean of the two
  double iou = 0;        // intersection over union: right answers by samples that are either
};

class ConfusionMatrix {
 public:
  static constexpr int kMostClasses = 4096;

  // Requires 1 <= classes <= kMostClasses and positions >= 1: of a sample, each with a label.
  explicit ConfusionMatrix(int classes, int64_t positions = 1);

  int classes() const { return classes_; }
  // Adds samples with these labels (samples x positions), by their scores (samples x classes x
  // positions); the first of the largest scores is the answer. A label that is no class is passed
  // over.
  void Add(std::span<const int32_t> labels, std::span<const float> scores);
  int64_t count(int label, int answer) const { return counts_[Place(label, answer)]; }
  ClassFigures FiguresOf(int label) const;

  // Mean of the classes' iou, over those with samples or answers; 0 if there are none.
  double MeanIou() const;

  // A table of the classes' figures with the most frequent wrong answer of each, for people; below
  // it, if samples have several positions, the mean iou. names: by class; empty: none.
  std::string Text(std::span<const std::string> names) const;
  // The fields `classes` (an object for each class), `mean_iou` and `confusion_matrix` (a row for
  // each class, with the number of each answer).
  void AddTo(JsonFields* fields, std::span<const std::string> names) const;

 private:
  size_t Place(int label, int answer) const {
    return static_cast<size_t>(label) * static_cast<size_t>(classes_) + static_cast<size_t>(answer);
  }

  int classes_;
  int64_t positions_;
  std::vector<int64_t> counts_;  // classes x classes: label, answer
};

}  // namespace kumo
