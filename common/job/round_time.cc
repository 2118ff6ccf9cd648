#include "common/job/round_time.h"

#include <algorithm>

namespace kumo {

namespace {

// A round is a burst after a pause. Bytes that fit into the queues of a path go at nearly the rate
// of the link. If more are sent, TCP loses packets, and sends again: four hosts that each send 1 MB
// to three others through bare TCP sockets reach .6 to .85 of the rate for one way, and a round
// ends with the slowest connection of two ways.
constexpr double kQueue_s = .1;
constexpr double kShareInQueue = .8;
constexpr double kShareBeyond = .5;
// TCP's initial window (RFC 6928).
constexpr double kFirstWindow = 10 * 1448;
// A connection that was idle for a retransmission timeout begins with the first window again (RFC
// 5681, section 4.1). Linux: the smoothed round trip, which queues lengthen, and 200 ms at least.
double RetransmissionTimeout(double round_trip_s) { return .2 + 4 * round_trip_s; }

}  // namespace

double TransferTime(double at_full_rate_s) {
  const double queued_s = std::min(at_full_rate_s, kQueue_s);
  return queued_s / kShareInQueue + (at_full_rate_s - queued_s) / kShareBeyond;
}

double WindowGrowth(double bytes, double bytes_per_s, double round_trip_s) {
  if (bytes_per_s <= 0) return 0;
  double lost = 0;
  double sent = 0;
  double window = kFirstWindow;
  while (window < bytes_per_s * round_trip_s && sent + window < bytes) {
    lost += round_trip_s - window / bytes_per_s;
    sent += window;
    window *= 2;
  }
  return lost;
}

// Chunks are pushed, closed and pulled one after the other, so the servers' arithmetic runs beside
// the transfer: the longer of both counts. The last chunk waits for one way there and one back.
RoundTime PredictRound(const RoundLoad& load, const RoundSpeed& speed,
                       const NetworkSpeed& network) {
  const double workers = std::max(1, load.workers);
  const double servers = std::max(1, load.servers);
  // The worker with the most partitions determines the round.
  const double partitions = (load.partitions + load.workers - 1) / std::max(1, load.workers);
  RoundTime time;
  time.compute_s = partitions * load.steps * speed.step_s;
  time.coding_s = partitions * speed.encode_s + speed.install_s;

  // Bytes through the busiest link in its busier direction, and its connections. Workers without a
  // partition pull nothing. On a server's host the worker with the most partitions sends most, and
  // the one with the fewest leaves most for the others to send.
  const double pullers = std::clamp(load.partitions, 1, std::max(1, load.workers));
  const double fewest = load.partitions / std::max(1, load.workers);
  double bytes = 0;
  double connections = 1;
  if (load.beside) {
    const double elsewhere = (servers - 1) / servers;
    const double out =
        partitions * load.push_bytes * elsewhere + (pullers - 1) * load.pull_bytes / servers;
    const double in =
        (load.partitions - fewest) * load.push_bytes / servers + load.pull_bytes * elsewhere;
    bytes = std::max(out, in);
    if (servers < workers) {
      bytes = std::max({bytes, partitions * load.push_bytes, load.pull_bytes});
    }
    connections = std::max(1.0, servers - 1);
  } else {
    bytes = std::max({partitions * load.push_bytes, load.pull_bytes,
                      load.partitions * load.push_bytes / servers,
                      pullers * load.pull_bytes / servers});
    connections = std::max(workers, servers);
  }
  double transfer_s = 0;
  double waiting_s = 2 * network.delay_s;
  if (network.bits_per_s > 0) {
    const double rate = network.bits_per_s / 8;
    transfer_s = TransferTime(bytes / rate);
    const double idle_s = time.compute_s + time.coding_s;
    if (idle_s > RetransmissionTimeout(2 * network.delay_s)) {
      waiting_s += WindowGrowth(partitions * load.push_bytes / servers, rate / connections,
                                2 * network.delay_s);
    }
  }
  const double closing_s = (load.partitions * speed.add_s + speed.close_s) / servers;
  time.exchange_s = std::max(transfer_s, closing_s) + waiting_s;
  const double busy_s = time.compute_s + time.coding_s;
  if (load.delay > 0) {
    // delay + 1 rounds are under way at a time, and none is shorter than its part in one place.
    // Their transfers share the link: one waits for half of another, on average.
    time.round_s = std::max({busy_s, transfer_s, closing_s,
                             (busy_s + time.exchange_s + transfer_s / 2) / (load.delay + 1)});
    return time;
  }
  const double hidden_s = load.overlap * speed.step_s;
  if (speed.codes_beside_steps && load.overlap > 0) {
    time.round_s = time.compute_s + std::max(0.0, time.coding_s + time.exchange_s - hidden_s);
  } else {
    time.round_s = busy_s + std::max(0.0, time.exchange_s - hidden_s);
  }
  return time;
}

int64_t RoundsOfEpoch(const RoundLoad& load, int64_t minibatches) {
  return (minibatches + load.steps - 1) / std::max(1, load.steps);
}

RoundTime PredictEpoch(const RoundLoad& load, int64_t minibatches, const RoundSpeed& speed,
                       const NetworkSpeed& network) {
  const int64_t rounds = RoundsOfEpoch(load, minibatches);
  RoundTime sum;
  const auto add = [&](double count, int64_t steps, int overlap) {
    if (count <= 0) return;
    RoundLoad other = load;
    other.steps = static_cast<int>(steps);
    other.overlap = static_cast<int>(std::min<int64_t>(overlap, steps - 1));
    const RoundTime time = PredictRound(other, speed, network);
    sum.compute_s += count * time.compute_s;
    sum.coding_s += count * time.coding_s;
    sum.exchange_s += count * time.exchange_s;
    sum.round_s += count * time.round_s;
  };
  add(1, std::min<int64_t>(load.steps, minibatches), 0);
  add(static_cast<double>(rounds - 2), load.steps, load.overlap);
  if (rounds > 1) add(1, minibatches - (rounds - 1) * load.steps, load.overlap);
  const auto count = static_cast<double>(rounds);
  RoundTime mean{sum.compute_s / count, sum.coding_s / count, sum.exchange_s / count,
                 sum.round_s / count};
  // The last rounds of late gradients wait for their exchange, as no others do.
  if (load.delay > 0) {
    const double alone_s = mean.compute_s + mean.coding_s + mean.exchange_s;
    mean.round_s += std::max(0.0, alone_s - mean.round_s) / count;
  }
  return mean;
}

}  // namespace kumo
