// A small net that trains in a test, and its samples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/net/net.h"
#include "tests/models/numbers.h"

namespace kumo {

// Of softmax_cross_entropy; or, of several losses, what is trained on.
struct LossSums {
  double loss_sum = 0;
  double correct = 0;
};

// A net with its arenas.
struct TrainedNet {
  TrainedNet(const model::Network& network, int max_batch, int threads = 1, uint64_t seed = 1) {
    backend = MakeCpuBackend(threads);
    Result<std::unique_ptr<Net>> made = Net::Make(network, max_batch, backend.get());
    CHECK(made.ok()) << made.status().message();
    net = std::move(made).value();
    Result<ParameterLayout> own = ParameterLayout::Make(net->tensors());
    CHECK(own.ok()) << own.status().message();
    layout = *own;
    weights.resize(layout.size());
    gradients.resize(layout.size());
    CHECK(net->InitialWeights(seed, layout, weights).ok());
    CHECK(net->Bind(layout, weights.data(), gradients.data()).ok());
  }
  LossSums Step(const Numbers& batch, const StepStreams& streams = {}) {
    CHECK(batch.LoadInto(net.get()).ok());
    StepParameters step;
    step.streams = streams;
    backend->SetStep(step);
    net->Train();
    return TakeSums();
  }
  LossSums Evaluate(const Numbers& batch) {
    CHECK(batch.LoadInto(net.get()).ok());
    net->Evaluate();
    return TakeSums();
  }
  LossSums TakeSums() {
    const std::vector<double> sums = net->TakeSums().value();
    return {net->metrics().Find("total_loss") == nullptr ? sums[0] : sums.back(), sums[1]};
  }
  void Descend(float rate) {
    const Range trained = {0, layout.segment(Segment::kUndecayed).end};
    for (int64_t i = 0; i < trained.end; ++i) weights[i] -= rate * gradients[i];
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Net> net;
  ParameterLayout layout;
  std::vector<float> weights;
  std::vector<float> gradients;
};

struct NetSamples {
  NetSamples(const Net& net, int count, uint64_t seed = 7) : size(net.input().size()) {
    Rng rng(seed, RngPurpose::kTest);
    inputs.resize(static_cast<size_t>(count * size));
    for (float& x : inputs) x = rng.NextUniform();
    for (int i = 0; i < count; ++i) {
      labels.push_back(static_cast<int32_t>(rng.NextBelow(net.classes())));
    }
  }
  Numbers Slice(int begin, int count) const {
    return {count, std::span(inputs).subspan(begin * size, count * size),
            std::span(labels).subspan(begin, count)};
  }

  int64_t size;
  std::vector<float> inputs;
  std::vector<int32_t> labels;
};

}  // namespace kumo
