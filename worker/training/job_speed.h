// Job speed: durations of a job's arithmetic on this machine, measured for some seconds without any
// server: a minibatch on the device, and each codec on the device and on a server's processor.
// `kumo tune` predicts rounds from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

// Durations of a codec for the whole vector of weights (RoundSpeed has their meaning).
struct CodecSpeed {
  std::string codec;
  int64_t push_bytes = 0;  // of a contribution
  int64_t pull_bytes = 0;  // of a version
  double encode_s = 0;
  double install_s = 0;
  double add_s = 0;
  double close_s = 0;
};

struct JobSpeed {
  int64_t parameters = 0;
  int64_t train_samples = 0;
  int minibatch = 0;  // samples
  double step_s = 0;
  bool codes_beside_steps = false;
  std::vector<CodecSpeed> codecs;  // from the most exact one to the shortest one

  JsonFields Json() const;
};

// Trains the experiment's network on its device and data for about `seconds`, as blocks with
// optimiser.*, and then measures the codecs. Medians. The errors of Trainer::Make; OutOfRange if
// the weights do not stay finite.
Result<JobSpeed> MeasureJobSpeed(const Experiment& experiment, double seconds, const Clock* clock);

}  // namespace kumo
