// Round predictions: rounds of an experiment in several modes, blocks, codecs and overlaps on a
// given network, from the speeds that kumo-worker has measured, and the settings to take. The model
// of a round is common/job/round_time.h.
//
// Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/round_time.h"
#include "common/settings/choices.h"
#include "common/settings/experiment.h"

namespace kumo {

struct CodecMeasurement {
  std::string name;
  double push_bytes = 0, pull_bytes = 0;
  RoundSpeed speed;
};

// The answer of kumo-worker --speed.
struct SpeedMeasurement {
  double parameters = 0;
  double train_samples = 0;
  int minibatch = 1;
  double step_s = 0;
  std::vector<CodecMeasurement> codecs;  // the exact ones first
};

// Settings of the exchange, and what they lead to.
struct RoundPrediction {
  SyncMode mode = SyncMode::kGradient;
  int block = 1;
  int overlap = 0;  // of gradients: the delay
  bool ends_warm_up = false;
  bool ends_fragments = false;  // of the experiment: the weights are exchanged as a whole
  const CodecMeasurement* codec = nullptr;  // of SpeedMeasurement
  RoundTime time = {};
  double samples_per_round = 0;
  double samples_per_s = 0;

  std::vector<std::string> Settings() const;  // "sync.mode=block"
};

// In the order of preference: gradients before blocks, which are trained apart from each other;
// short blocks first, then without overlap; for each of them the codecs in their order. load: the
// processes and partitions. allows: whether the experiment allows Settings(); those that it refuses
// are left out. If it refuses all of them: its last error. measured must outlive the result.
Result<std::vector<RoundPrediction>> PredictRounds(
    const Experiment& experiment, const SpeedMeasurement& measured, RoundLoad load,
    const NetworkSpeed& network,
    const std::function<Status(const std::vector<std::string>& settings)>& allows);

// The first prediction that hides the network, or else the fastest one. Requires at least one.
const RoundPrediction& BestPrediction(const std::vector<RoundPrediction>& predictions);
// Words about the best one: lines of text.
std::string ReasonFor(const RoundPrediction& best);

}  // namespace kumo
