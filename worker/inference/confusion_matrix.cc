#include "worker/inference/confusion_matrix.h"

#include <algorithm>
#include <cstdio>

#include "common/base/printable.h"
#include "common/base/text_table.h"

namespace kumo {
namespace {

constexpr size_t kLongestName = 24;

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(int classes, int64_t positions)
    : classes_(classes),
      positions_(positions),
      counts_(static_cast<size_t>(classes) * static_cast<size_t>(classes)) {}

void ConfusionMatrix::Add(std::span<const int32_t> labels, std::span<const float> scores) {
  for (int64_t i = 0; i < std::ssize(labels); ++i) {
    if (labels[i] < 0 || labels[i] >= classes_) continue;
    const float* const first =
        scores.data() + i / positions_ * classes_ * positions_ + i % positions_;
    int answer = 0;
    for (int c = 1; c < classes_; ++c) {
      if (first[c * positions_] > first[answer * positions_]) answer = c;
    }
    ++counts_[Place(labels[i], answer)];
  }
}

ClassFigures ConfusionMatrix::FiguresOf(int label) const {
  ClassFigures figures;
  for (int other = 0; other < classes_; ++other) {
    figures.samples += count(label, other);
    figures.answers += count(other, label);
  }
  const int64_t right = count(label, label);
  figures.precision = Share(right, figures.answers);
  figures.recall = Share(right, figures.samples);
  figures.f1 = Share(2 * right, figures.samples + figures.answers);
  figures.iou = Share(right, figures.samples + figures.answers - right);
  return figures;
}

double ConfusionMatrix::MeanIou() const {
  double sum = 0;
  int counted = 0;
  for (int label = 0; label < classes_; ++label) {
    const ClassFigures figures = FiguresOf(label);
    if (figures.samples + figures.answers == 0) continue;
    sum += figures.iou;
    ++counted;
  }
  return counted > 0 ? sum / counted : 0;
}

std::string ConfusionMatrix::Text(std::span<const std::string> names) const {
  const auto share = [](double figure) {
    char text[16];
    std::snprintf(text, sizeof text, "%.4f", figure);
    return std::string(text);
  };
  const bool many = positions_ > 1;
  const std::vector<TextColumn> header = {{"class", /*right=*/false},
                                          {many ? "positions" : "samples"},
                                          {"precision"},
                                          {"recall"},
                                          {"f1"},
                                          {"iou"},
                                          {"mistaken most for", /*right=*/false}};
  std::vector<std::vector<std::string>> rows;
  for (int label = 0; label < classes_; ++label) {
    const ClassFigures figures = FiguresOf(label);
    int worst = -1;
    for (int other = 0; other < classes_; ++other) {
      if (other == label || count(label, other) == 0) continue;
      if (worst < 0 || count(label, other) > count(label, worst)) worst = other;
    }
    rows.push_back({NameOrNumber(names, label, kLongestName), std::to_string(figures.samples),
                    share(figures.precision), share(figures.recall), share(figures.f1),
                    share(figures.iou),
                    worst < 0 ? ""
                              : NameOrNumber(names, worst, kLongestName) + " (" +
                                    std::to_string(count(label, worst)) + ")"});
  }
  std::string text = FormatTextTable(header, rows, 0);
  if (many) text += "mean iou " + share(MeanIou()) + "\n";
  return text;
}

void ConfusionMatrix::AddTo(JsonFields* fields, std::span<const std::string> names) const {
  JsonArray classes, matrix;
  for (int label = 0; label < classes_; ++label) {
    const ClassFigures figures = FiguresOf(label);
    JsonFields one;
    one.Add("class", label);
    if (static_cast<size_t>(label) < names.size()) {
      one.Add("name", names[static_cast<size_t>(label)]);
    }
    one.Add(positions_ > 1 ? "positions" : "samples", figures.samples)
        .Add("precision", figures.precision);
    one.Add("recall", figures.recall).Add("f1", figures.f1).Add("iou", figures.iou);
    classes.Add(one);
    JsonArray row;
    for (int answer = 0; answer < classes_; ++answer) row.Add(count(label, answer));
    matrix.Add(row);
  }
  fields->Add("classes", classes).Add("mean_iou", MeanIou()).Add("confusion_matrix", matrix);
}

}  // namespace kumo
