// The job that the tests of servers and of workers without network or threads are about.
#pragma once

#include <vector>

#include <glog/logging.h>

#include "common/job/job_identity.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo::test {

struct Job {
  Experiment experiment;
  JobSpec spec;

  JobPlan plan() const {
    Result<JobPlan> plan = PlanFor(experiment, spec);
    CHECK(plan.ok()) << plan.status().message();
    return *plan;
  }
};

// Tensors of every segment.
inline std::vector<TensorSpec> SmallTensors() {
  return {{"a.weight", {40, 30}, Segment::kDecayed},
          {"a.bias", {30}, Segment::kUndecayed},
          {"n.mean", {17}, Segment::kStatistics}};
}

// 3 partitions, block mode without warm-up, chunks of 512 numbers in all three segments; 2 epochs
// of 4 rounds, the last one of each shorter.
inline Job SmallJob() {
  Job job;
  job.spec.layout = ParameterLayout::Make(SmallTensors()).value();
  job.spec.metrics = LossAndAccuracy();
  job.spec.train_samples = 80;
  job.spec.validation_samples = 10;
  Experiment& e = job.experiment;
  e.job.name = "small";
  e.job.epochs = 2;
  e.sync.mode = SyncMode::kBlock;
  e.sync.partitions = 3;
  e.sync.minibatch = 4;
  e.sync.block = 2;
  e.cluster.chunk_kib = 2;
  e.checkpoint.every_minutes = 0;
  return job;
}

// The same in gradient mode with so many rounds of delay: 2 epochs of 7 rounds.
inline Job DelayedJob(int delay) {
  Job job = SmallJob();
  job.experiment.sync.mode = SyncMode::kGradient;
  job.experiment.sync.overlap = delay;
  return job;
}

}  // namespace kumo::test
