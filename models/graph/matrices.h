// Matrices of a network: the tensors that an optimiser of matrices (muon) steps as such.
#pragma once

#include <cstdint>
#include <vector>

#include "models/graph/graph.h"

namespace kumo {

// Tensor `tensor` of Graph::tensors() as [rows][columns]: outputs, and inputs of an output.
struct MatrixTensor {
  int tensor = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  bool operator==(const MatrixTensor&) const = default;
};

// The weights of fully connected layers and of convolutions (all inputs of an output in a row), in
// the order of the tensors, but for
// - the last such layers in front of a loss, whose rows are classes or numbers of their own kind;
// - tensors that other layers use in another way, as embeddings do;
// - tensors that are not trained.
std::vector<MatrixTensor> MatricesOf(const Graph& graph);

}  // namespace kumo
