// Which checkpoint a run goes on from: what server 0 does, and what `kumo check` says that it
// would.
//
// Functions; they block while they read checkpoints. They only look.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

struct ResumePoint {
  // Verified; none: the beginning. Where the settings have changed since, its last continuation is
  // `continuation`.
  std::optional<checkpoint::Manifest> manifest;
  std::optional<checkpoint::Continuation> continuation;
  std::vector<std::string> skipped;  // newer checkpoints, and what is wrong with each
  bool named = false;                // by its round: there may be later ones
  bool finished = false;             // the job is done: that is its last one, as IsFinished says
};

// The round that checkpoint.resume names; none where it says something else.
std::optional<int64_t> RoundToResume(const Experiment& experiment);

// Whether a checkpoint is the end of its job, with nothing left to do: all rounds, and their
// evaluation. False where its manifest does not say how many samples there are (0.1).
bool IsFinished(const checkpoint::Manifest& manifest, const Experiment& experiment);

// By the checkpoint.resume setting. auto and must take the newest checkpoint that verifies; where
// there are some but none is good, and where the one that is named is damaged, FailedPrecondition
// says so and what to do. So it does where one has other settings, which it lists: without
// checkpoint.continue, and where they cannot change (continuation.h).
Result<ResumePoint> FindCheckpointToResume(FileSystem& files, const Experiment& experiment);

// The newest good checkpoint of a round up to `newest`; none where there is none at all. Else as
// above.
Result<ResumePoint> NewestToResume(FileSystem& files, const Experiment& experiment, int64_t newest);

}  // namespace kumo
