// Step of the local optimiser on all trained weights of a net: group by group of the layout, and
// matrix by matrix if the optimiser steps matrices.
//
// Muon's orthogonal factor of a matrix G, by Newton and Schulz's iteration (Jordan et al. 2024):
//   X = G / (|G|_F + 1e-7); five times A = X X^T, X <- 3.4445 X + (-4.7750 A + 2.0315 A^2) X
// which brings all singular values near 1 (.7 to 1.2) and leaves the singular vectors alone. If X
// has more rows than columns, A = X^T X stands on the right, so nothing is transposed.
//
// Used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/job/parameter_layout.h"
#include "common/optimiser/optimiser.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"
#include "models/graph/matrices.h"

namespace kumo {

class WeightStep {
 public:
  // Steps the weights of a layout on a backend, which outlives this object. matrices: the
  // network's.
  WeightStep(const ParameterLayout& layout, std::span<const MatrixTensor> matrices,
             const OptimiserTraits& optimiser, Backend* backend);

  // Queues the step of the backend's current optimiser, which has the traits that were given.
  // gradients, weights, and each of the optimiser's slots, which lie one behind the other: vectors
  // of the layout in the device's memory.
  void Queue(const float* gradients, float* weights, float* slots);

  // Floats of memory that a step of these matrices needs beside the vectors.
  static int64_t ScratchFloats(std::span<const MatrixTensor> matrices,
                               const OptimiserTraits& optimiser);

 private:
  struct Part {
    Segment segment = Segment::kDecayed;
    StepFactors factors;
    Range range;
    MatrixTensor matrix = {};  // without rows: no matrix
  };

  void AddGroup(const ParameterLayout& layout, const StepGroup& group,
                std::span<const MatrixTensor> matrices);
  void StepMatrix(const Part& part, const float* gradient, float* weights, float* mean);
  void Orthogonalise(int64_t rows, int64_t columns);

  const int64_t size_;  // of a vector
  const int slots_;
  Backend* const backend_;
  std::vector<Part> parts_;                 // all trained weights, by position
  DeviceArray<float> x_, product_;          // as large as the largest matrix
  DeviceArray<float> square_, polynomial_;  // as the largest product of a matrix with itself
};

}  // namespace kumo
