// Manifest of a checkpoint of the small job (small_job.h), for tests of jobs that go on from it.
#pragma once

#include <cstdint>

#include "common/checkpoint/manifest.h"
#include "common/settings/experiment_text.h"
#include "proto/checkpoint.pb.h"
#include "tests/common/job/small_job.h"

namespace kumo::test {

// Versions at the end of the first epoch and within it: there are 2 epochs of 4 rounds, in block
// mode.
constexpr int64_t kEpochsEnd = 4;
constexpr int64_t kWithin = 2;

inline checkpoint::Manifest ManifestOf(const Experiment& experiment, int64_t version) {
  const Job job = SmallJob();
  checkpoint::Manifest manifest;
  manifest.set_name("round");
  manifest.set_version(version);
  manifest.set_experiment_text(ExperimentText(experiment));
  manifest.set_fingerprint(job.spec.layout.fingerprint());
  manifest.set_train_samples(job.spec.train_samples);
  manifest.set_validation_samples(job.spec.validation_samples);
  SetTensors(job.spec.layout, &manifest);
  return manifest;
}

}  // namespace kumo::test
