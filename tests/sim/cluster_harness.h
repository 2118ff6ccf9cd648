// Harness: a small job in the simulation, and the values by which its runs are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/common/job/small_job.h"
#include "tests/sim/cluster.h"

namespace kumo::sim {

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

// A job's curve, to the bit.
using Point = std::tuple<int64_t, int64_t, int64_t, double, double, std::optional<double>>;
inline std::vector<Point> Curve(const SimResult& result) {
  std::vector<Point> curve;
  for (const CurvePointAction& point : result.points) {
    curve.emplace_back(point.version, point.samples, point.train.samples,
                       test::LossSum(point.train), test::Correct(point.train), point.learning_rate);
  }
  return curve;
}

inline void ExpectFinished(const SimResult& result) {
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
}

}  // namespace kumo::sim
