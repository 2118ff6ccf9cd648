// Round time: prediction of how long a round lasts, in block mode or with gradients, from the speed
// of computation, codecs and network. A model of a few terms, checked against measured rounds
// (tests/common/job/round_time_test.cc); docs/slow_networks.md, "Prediction".
//
// Pure functions.
#pragma once

#include <cstdint>

namespace kumo {

// Durations for the whole vector of weights.
struct RoundSpeed {
  double step_s = 0;     // one minibatch of a partition
  double encode_s = 0;   // a contribution, on the worker
  double install_s = 0;  // decoding of a pull, on the worker
  // On a server that has all chunks: adding one contribution, and making and encoding the version.
  double add_s = 0;
  double close_s = 0;
  bool codes_beside_steps = false;  // the worker codes while it trains ahead
};

// Rate of each host's link in each direction, and one-way delay between hosts.
struct NetworkSpeed {
  double bits_per_s = 0;  // 0: unlimited
  double delay_s = 0;
};

struct RoundLoad {
  int workers = 1;
  int servers = 1;
  int partitions = 1;
  bool beside = true;     // servers run on the workers' hosts; else on hosts of their own
  int steps = 1;          // minibatches of a block
  int overlap = 0;        // of these, trained while the last block is exchanged
  int delay = 0;          // gradient mode: rounds that gradients are late
  double push_bytes = 0;  // of one contribution
  double pull_bytes = 0;  // of a version
};

struct RoundTime {
  double compute_s = 0;   // steps of a worker
  double coding_s = 0;    // encoding and decoding on the worker
  double exchange_s = 0;  // from the push to the last chunk of the next version
  double round_s = 0;     // with the part of coding and exchange that no step hides

  // Share of the time in which steps are computed.
  double utilisation() const { return round_s > 0 ? compute_s / round_s : 0; }
};

// Time of a round's bytes through the busiest link, from their time at its full rate.
double TransferTime(double at_full_rate_s);

// Time that a connection loses while TCP's window grows from its first size: `bytes` through a
// share of bytes_per_s with the given round trip.
double WindowGrowth(double bytes, double bytes_per_s, double round_trip_s);

RoundTime PredictRound(const RoundLoad& load, const RoundSpeed& speed, const NetworkSpeed& network);

// Rounds of an epoch in which each partition has `minibatches`, at least one.
int64_t RoundsOfEpoch(const RoundLoad& load, int64_t minibatches);
// The mean round of such an epoch. Its last round may be of fewer steps, its first one hides
// nothing, and it ends when nothing is on its way.
RoundTime PredictEpoch(const RoundLoad& load, int64_t minibatches, const RoundSpeed& speed,
                       const NetworkSpeed& network);

}  // namespace kumo
