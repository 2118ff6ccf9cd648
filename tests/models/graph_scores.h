// What a graph makes of inputs, on the CPU, as it is in use.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include <glog/logging.h>

#include "common/base/buffer.h"
#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/net/execution.h"
#include "tests/models/numbers.h"

namespace kumo {

using Tensors = std::vector<std::vector<float>>;  // by parameter

inline std::vector<float> NumbersWithin(int64_t n, float most, Rng* rng) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) x = rng->NextUniform(-most, most);
  return numbers;
}

// Weights that keep numbers near 1, and variances that are some.
inline Tensors RandomTensors(const Graph& graph, Rng* rng) {
  Tensors tensors;
  for (const Parameter& parameter : graph.parameters) {
    const TensorSpec& spec = parameter.tensor;
    const int64_t per_output = spec.shape.size() > 1 ? spec.size() / spec.shape[0] : 1;
    const float most = std::sqrt(3.0f / static_cast<float>(per_output));
    tensors.push_back(NumbersWithin(spec.size(), std::min(most, 1.0f), rng));
    if (!spec.name.ends_with(".running_variance")) continue;
    for (float& x : tensors.back()) x = std::abs(x) + 0.1f;
  }
  return tensors;
}

// inputs: batch x the graph's only input; whole numbers where it takes these. Of an output batch x
// its shape.
inline std::vector<float> OutputOf(const Graph& graph, const Tensors& tensors,
                                   const std::vector<float>& inputs, int batch, int output = 0) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend(1);
  const Result<ParameterLayout> layout = ParameterLayout::Make(graph.tensors());
  CHECK(layout.ok()) << layout.status().message();
  Buffer<float> weights(layout->size()), gradients(layout->size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::copy(tensors[i].begin(), tensors[i].end(),
              weights.data() + layout->tensor(static_cast<int>(i)).begin);
  }
  const auto execution = Execution::Make(graph, batch, backend.get());
  CHECK(execution.ok()) << execution.status().message();
  (*execution)->Bind(*layout, weights.data(), gradients.data());
  const Value& input = graph.values[0];
  if (input.vocabulary > 0) {
    const std::vector<int32_t> words(inputs.begin(), inputs.end());
    backend->Write(words.data(), words.size() * sizeof(int32_t), (*execution)->input(0));
  } else {
    LoadActivations(*backend, input.shape, batch, inputs.data(), (*execution)->input(0));
  }
  (*execution)->Forward({batch, false});
  std::vector<float> numbers(batch * graph.values[graph.outputs[output].value].shape.size());
  (*execution)->ReadOutput(output, batch, numbers.data());
  return numbers;
}

}  // namespace kumo
