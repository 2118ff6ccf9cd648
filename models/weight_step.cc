#include "models/weight_step.h"

#include <algorithm>
#include <cmath>

namespace kumo {
namespace {

// Newton and Schulz's iteration, tuned for few steps rather than for exact singular values.
constexpr int kIterations = 5;
constexpr float kFirst = 3.4445f;
constexpr float kThird = -4.7750f;
constexpr float kFifth = 2.0315f;
constexpr float kEpsilon = 1e-7f;

constexpr char kScratch[] = "the optimiser's matrices";

struct Largest {
  int64_t matrix = 0;
  int64_t square = 0;
};
Largest LargestOf(std::span<const MatrixTensor> matrices, const OptimiserTraits& optimiser) {
  Largest largest;
  if (!optimiser.steps_matrices) return largest;
  for (const MatrixTensor& m : matrices) {
    const int64_t side = std::min(m.rows, m.columns);
    largest.matrix = std::max(largest.matrix, m.rows * m.columns);
    largest.square = std::max(largest.square, side * side);
  }
  return largest;
}

}  // namespace

WeightStep::WeightStep(const ParameterLayout& layout, std::span<const MatrixTensor> matrices,
                       const OptimiserTraits& optimiser, Backend* backend)
    : size_(layout.size()), slots_(optimiser.slots), backend_(backend) {
  if (!optimiser.steps_matrices) matrices = {};
  for (const StepGroup& group : layout.groups()) {
    if (group.trained()) AddGroup(layout, group, matrices);
  }
  if (matrices.empty()) return;
  const Largest largest = LargestOf(matrices, optimiser);
  x_ = DeviceArray<float>(*backend, largest.matrix, kScratch);
  product_ = DeviceArray<float>(*backend, largest.matrix, kScratch);
  square_ = DeviceArray<float>(*backend, largest.square, kScratch);
  polynomial_ = DeviceArray<float>(*backend, largest.square, kScratch);
}

int64_t WeightStep::ScratchFloats(std::span<const MatrixTensor> matrices,
                                  const OptimiserTraits& optimiser) {
  const Largest largest = LargestOf(matrices, optimiser);
  return 2 * (largest.matrix + largest.square);
}

// Tensors keep their order inside a group.
void WeightStep::AddGroup(const ParameterLayout& layout, const StepGroup& group,
                          std::span<const MatrixTensor> matrices) {
  int64_t begin = group.range.begin;
  const auto add_until = [&](int64_t end) {
    if (end > begin) parts_.push_back({group.segment, group.factors, {begin, end}});
  };
  for (const MatrixTensor& matrix : matrices) {
    const Range range = layout.tensor(matrix.tensor);
    if (range.begin < group.range.begin || range.end > group.range.end) continue;
    add_until(range.begin);
    parts_.push_back({group.segment, group.factors, range, matrix});
    begin = range.end;
  }
  add_until(group.range.end);
}

void WeightStep::Queue(const float* gradients, float* weights, float* slots) {
  for (const Part& part : parts_) {
    const int64_t begin = part.range.begin;
    if (part.matrix.rows > 0) {
      StepMatrix(part, gradients + begin, weights + begin, slots + begin);
      continue;
    }
    float* slot_parts[Optimiser::kMaxSlots] = {};
    for (int i = 0; i < slots_; ++i) slot_parts[i] = slots + i * size_ + begin;
    backend_->OptimiserStep(part.segment, part.factors, gradients + begin, part.range.size(),
                            weights + begin, slot_parts);
  }
}

void WeightStep::StepMatrix(const Part& part, const float* gradient, float* weights, float* mean) {
  const MatrixTensor& matrix = part.matrix;
  const int64_t n = part.range.size();
  backend_->DirectionOfMatrix(gradient, n, mean, x_.data());
  Orthogonalise(matrix.rows, matrix.columns);
  const double ratio = static_cast<double>(matrix.rows) / static_cast<double>(matrix.columns);
  const auto stretch = static_cast<float>(std::sqrt(std::max(1.0, ratio)));
  backend_->StepMatrix(part.segment, part.factors, stretch, x_.data(), n, weights);
}

void WeightStep::Orthogonalise(int64_t rows, int64_t columns) {
  const int64_t n = rows * columns;
  const int64_t side = std::min(rows, columns);
  const bool tall = rows > columns;
  float* const x = x_.data();
  backend_->Normalise(kEpsilon, n, x);
  for (int i = 0; i < kIterations; ++i) {
    const int64_t depth = std::max(rows, columns);
    backend_->MultiplyMatrices({side, side, depth, tall, !tall}, x, x, square_.data());
    backend_->MultiplyMatrices({side, side, side}, square_.data(), square_.data(),
                               polynomial_.data());
    backend_->Combine(kThird, square_.data(), kFifth, polynomial_.data(), side * side,
                      polynomial_.data());
    const float* const left = tall ? x : polynomial_.data();
    const float* const right = tall ? polynomial_.data() : x;
    backend_->MultiplyMatrices({rows, columns, side}, left, right, product_.data());
    backend_->Combine(kFirst, x, 1.0f, product_.data(), n, x);
  }
}

}  // namespace kumo
