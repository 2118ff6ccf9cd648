// Workloads of train_speed: networks with minibatch size and optimiser, and a trainer of a network
// on random minibatches: forward, backward and optimiser step, as in a worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/instruction_set.h"
#include "common/base/rng.h"
#include "common/optimiser/optimiser.h"
#include "models/devices/devices.h"
#include "models/net/net.h"
#include "models/weight_step.h"

namespace kumo {

// Current time in seconds; with cpu_time, this process's CPU time.
double Now(bool cpu_time);

struct Work {
  const char* name;
  model::Network network;
  int batch;
  OptimiserSettings optimiser;
  float learning_rate;
  Precision precision = Precision::kFp32;
  InstructionSet instruction_set = InstructionSet::kAuto;  // on a CPU
};

std::vector<Work> AllWork();

class Trainer {
 public:
  Trainer(const Work& work, const Device& device);

  void Step();
  // Samples per second, measured over about `seconds`.
  double Measure(double seconds, bool cpu_time);
  Net& net() { return *net_; }

 private:
  void Load(size_t i);
  void MakeData();
  std::vector<std::byte> Draw(const Field& field, uint64_t below, Rng* rng) const;

  Work work_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Net> net_;
  ParameterLayout layout_;
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;
  std::unique_ptr<Optimiser> optimiser_;
  DeviceArray<float> slots_;
  WeightStep optimiser_step_;
  std::array<std::array<std::vector<std::byte>, 2>, 8> minibatches_;  // inputs and labels
  int64_t step_ = 0;
};

}  // namespace kumo
