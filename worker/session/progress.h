// How far a worker has come and how long a round took, as its reports say it.
//
// A round's times are known when the next version is there. Network: coding, pushes until the last
// is acknowledged, and chunks from the first to the last. Wait: from the acknowledgement until the
// first chunk of the next version comes.
//
// Owned by a Rounds; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "proto/wire.pb.h"
#include "worker/session/actions.h"

namespace kumo {

class Progress {
 public:
  void OnTraining(TimeUs now);
  void OnTrained(const TrainedBlock& block, TimeUs now);
  // The last chunk of a block is pushed; `round` is computed next.
  void OnPushed(int64_t round, TimeUs now);
  void OnPushAcknowledged(TimeUs now) { acknowledged_ = now; }
  // A chunk of the next version has come.
  void OnChunk(TimeUs now);
  // All have.
  void OnVersion();
  // A generation, or a membership, is over: the times may be those of a worker that was frozen.
  void ForgetTimes();

  void Report(wire::WorkerReport* report) const;

 private:
  // Of the round under way, as far as it has come: when its last block was pushed, when the last
  // push was acknowledged, and when the first and the last chunk of the next version came.
  std::optional<TimeUs> pushed_, acknowledged_, first_chunk_, last_chunk_;
  double coding_ms_ = 0;  // of the last block

  // As reported.
  std::optional<double> compute_ms_, network_ms_, wait_ms_;
  int64_t round_ = 0;
  int64_t samples_ = 0;
  double samples_at_s_ = 0;
};

}  // namespace kumo
