// Harness: a small job in the simulation, and the values by which its runs are compared.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/common/job/small_job.h"
#include "tests/sim/cluster.h"

namespace kumo::sim {

// A whole number from the environment, e.g. KUMO_SIM_SEEDS=600.
inline int FromEnvironment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

// How many random jobs EverySeed simulates: KUMO_SIM_SEEDS.
inline constexpr int kAllSeeds = 2000;
inline int Seeds() { return FromEnvironment("KUMO_SIM_SEEDS", kAllSeeds); }

// The same share of the seeds of another test, at least one.
inline uint64_t ShareOf(uint64_t seeds) {
  return std::clamp<uint64_t>(seeds * static_cast<uint64_t>(Seeds()) / kAllSeeds, 1, seeds);
}

inline SimSettings SmallJob(uint64_t seed = 1) {
  SimSettings settings;
  settings.seed = seed;
  settings.tensors = test::SmallTensors();
  settings.tensors.push_back({"b.weight", {30, 25}, Segment::kDecayed});
  settings.train_samples = 103;
  settings.validation_samples = 11;
  Experiment& e = settings.experiment;
  e.job.name = "sim";
  e.job.epochs = 3;
  e.sync.mode = SyncMode::kBlock;
  e.sync.partitions = 4;
  e.sync.minibatch = 4;
  e.sync.block = 2;
  e.cluster.workers = 2;
  e.cluster.suspect_after_s = 2;
  e.cluster.heartbeat_s = 0.3;
  e.cluster.chunk_kib = 2;
  e.checkpoint.every_rounds = 0;
  e.checkpoint.every_minutes = 0;
  e.output.points_per_epoch = 3;  // some of several rounds
  return settings;
}

inline SimResult RunJob(SimSettings settings, Disk* disk = nullptr) {
  return Cluster(std::move(settings), disk).Run();
}

// Bits of floating-point numbers: tests compare these, since == takes 0 for -0, and NaN for no NaN.
inline std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}
inline std::vector<uint64_t> Bits(const std::vector<double>& numbers) {
  std::vector<uint64_t> bits;
  for (const double x : numbers) bits.push_back(std::bit_cast<uint64_t>(x));
  return bits;
}
inline bool SameBits(const MetricSums& a, const MetricSums& b) {
  return a.samples == b.samples && Bits(a.sums) == Bits(b.sums);
}

// A job's curve: version, samples, and samples, metric sums and learning rate of each point.
// Floating point numbers are given by their bits.
using Point = std::tuple<int64_t, int64_t, int64_t, std::vector<uint64_t>, uint64_t>;
inline std::vector<Point> Curve(const SimResult& result) {
  std::vector<Point> curve;
  for (const CurvePointAction& point : result.points) {
    curve.emplace_back(point.version, point.samples, point.train.samples, Bits(point.train.sums),
                       std::bit_cast<uint64_t>(point.learning_rate.value_or(-1)));
  }
  return curve;
}

inline void ExpectFinished(const SimResult& result) {
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
}

}  // namespace kumo::sim
