#include "common/job/round_time.h"

#include <initializer_list>

#include <gtest/gtest.h>

#include "common/codec/codec.h"

namespace kumo {
namespace {

constexpr double kParameters = 30'800'000;
constexpr double kOneBit = kParameters * 1.125 / 8;

RoundLoad FourHosts(double bytes, int steps, int overlap = 0) {
  return {.workers = 4,
          .servers = 4,
          .partitions = 4,
          .beside = true,
          .steps = steps,
          .overlap = overlap,
          .push_bytes = bytes,
          .pull_bytes = bytes};
}

// Compute utilisation as bench/grid.py has measured it. Its hosts share two cores: the durations of
// codecs and servers are those under that load, taken from the rows without a limit.
struct Cell {
  double mbit_per_s;
  int steps;
  int overlap;
  double measured;
};

void ExpectPredicted(std::initializer_list<Cell> cells, double bytes, const RoundSpeed& speed) {
  for (const Cell& cell : cells) {
    const RoundTime time = PredictRound(FourHosts(bytes, cell.steps, cell.overlap), speed,
                                        {cell.mbit_per_s * 1e6, cell.mbit_per_s > 0 ? .01 : 0});
    EXPECT_NEAR(time.utilisation() / cell.measured, 1, .15)
        << cell.mbit_per_s << " Mbit/s, blocks of " << cell.steps << ", overlap " << cell.overlap
        << ": " << time.utilisation() << " instead of " << cell.measured;
  }
}

TEST(RoundTime, AgreesWithMeasuredRoundsOf1bit) {
  const RoundSpeed speed{
      .step_s = .025, .encode_s = .035, .install_s = .015, .add_s = .1, .close_s = .2};
  ExpectPredicted(
      {{50, 32, 0, .2775},    {200, 32, 0, .5508}, {1000, 32, 0, .6584}, {5000, 32, 0, .6688},
       {0, 32, 0, .7664},     {50, 32, 16, .3619}, {200, 32, 16, .8595}, {1000, 32, 16, .9374},
       {5000, 32, 16, .9281}, {0, 32, 16, .9441},  {50, 8, 0, .0870},    {200, 8, 0, .2649},
       {1000, 8, 0, .4251},   {5000, 8, 0, .4698}, {0, 8, 0, .5259},     {50, 8, 4, .0896},
       {200, 8, 4, .3336},    {1000, 8, 4, .5453}, {5000, 8, 4, .5996},  {0, 8, 4, .7059}},
      kOneBit, speed);
}

TEST(RoundTime, AgreesWithMeasuredRoundsOfTopk) {
  const RoundSpeed speed{
      .step_s = .025, .encode_s = .07, .install_s = .03, .add_s = .1, .close_s = .4};
  // 1.6 % of 4,096
  const Codec& topk = CodecOf(CodecId::kTopk, {.kept = 66, .values = CodecId::kInt4});
  ExpectPredicted({{50, 32, 0, .5769},
                   {200, 32, 0, .6946},
                   {1000, 32, 0, .7097},
                   {5000, 32, 0, .7034},
                   {0, 32, 0, .7163},
                   {50, 32, 16, .7382},
                   {200, 32, 16, .8812},
                   {5000, 32, 16, .9104}},
                  static_cast<double>(topk.EncodedBytes(static_cast<size_t>(kParameters))), speed);
}

// bench/tune.py: two hosts, 1.9 million parameters, real computation, 100 Mbit/s and 10 ms.
TEST(RoundTime, AgreesWithMeasuredJobs) {
  constexpr double kWeights = 1'863'690;
  struct Job {
    double bits;
    int steps, overlap, delay;
    double measured_s;
  };
  for (const Job& job : {Job{1.125, 1, 0, 0, .0592},
                         {1.125, 1, 0, 1, .0391},
                         {8.0625, 8, 4, 0, .270},
                         {16, 32, 0, 0, .924},
                         {32, 8, 0, 0, 1.357}}) {
    const RoundLoad load{.workers = 2,
                         .servers = 2,
                         .partitions = 2,
                         .steps = job.steps,
                         .overlap = job.overlap,
                         .delay = job.delay,
                         .push_bytes = kWeights * job.bits / 8,
                         .pull_bytes = kWeights * job.bits / 8};
    const RoundSpeed speed{
        .step_s = .0123, .encode_s = .001, .install_s = .001, .codes_beside_steps = true};
    EXPECT_NEAR(PredictRound(load, speed, {100e6, .01}).round_s / job.measured_s, 1, .15)
        << job.bits << " bits, " << job.steps << " steps, delay " << job.delay;
  }
}

TEST(RoundTime, HidesTheExchangeBehindTheOverlapOnly) {
  const RoundSpeed speed{.step_s = .01, .encode_s = .002, .install_s = .001};
  const NetworkSpeed network{100e6, .005};
  const RoundTime none = PredictRound(FourHosts(1e6, 100), speed, network);
  const RoundTime some = PredictRound(FourHosts(1e6, 100, 10), speed, network);
  const RoundTime all = PredictRound(FourHosts(1e6, 100, 50), speed, network);
  EXPECT_GT(none.exchange_s, .1);
  EXPECT_NEAR(none.round_s - some.round_s, .1, 1e-9);
  EXPECT_NEAR(all.round_s, 1.003, 1e-9);
  EXPECT_NEAR(all.utilisation(), 1 / 1.003, 1e-9);
}

TEST(RoundTime, AWorkerThatCodesBesideStepsHidesCodingToo) {
  RoundSpeed speed{.step_s = .01, .encode_s = .02, .install_s = .01, .codes_beside_steps = true};
  EXPECT_NEAR(PredictRound(FourHosts(0, 10, 5), speed, {}).round_s, .1, 1e-9);
  EXPECT_NEAR(PredictRound(FourHosts(0, 10, 2), speed, {}).round_s, .11, 1e-9);
  EXPECT_NEAR(PredictRound(FourHosts(0, 10), speed, {}).round_s, .13, 1e-9);
  speed.codes_beside_steps = false;
  EXPECT_NEAR(PredictRound(FourHosts(0, 10, 5), speed, {}).round_s, .13, 1e-9);
}

TEST(RoundTime, GradientsThatAreLateShareTheTimeOfTheirExchange) {
  RoundLoad load = FourHosts(1e6, 1);  // 12 Mbit through a link
  const RoundSpeed speed{.step_s = .1, .encode_s = .01};
  const double transfer = TransferTime(.1);
  const NetworkSpeed slow{120e6, .01};
  EXPECT_NEAR(PredictRound(load, speed, slow).round_s, .11 + transfer + .02, 1e-9);
  load.delay = 1;
  EXPECT_NEAR(PredictRound(load, speed, slow).round_s, (.11 + transfer + .02 + transfer / 2) / 2,
              1e-9);
  load.delay = 3;
  EXPECT_NEAR(PredictRound(load, speed, slow).round_s, transfer, 1e-9);      // the link is busy
  EXPECT_NEAR(PredictRound(load, speed, {1200e6, .01}).round_s, .11, 1e-9);  // the worker is
}

TEST(RoundTime, AnEpochsRoundsAreItsMinibatches) {
  const RoundSpeed speed{.step_s = .01};
  const NetworkSpeed network{100e6, .005};
  const double exchange_s = PredictRound(FourHosts(1e6, 1), speed, network).exchange_s;
  const auto epoch = [&](int steps, int overlap, int64_t minibatches) {
    const RoundLoad load = FourHosts(1e6, steps, overlap);
    return PredictEpoch(load, minibatches, speed, network).round_s *
           static_cast<double>(RoundsOfEpoch(load, minibatches));
  };
  // A block that is longer than the epoch is the epoch.
  EXPECT_NEAR(epoch(128, 0, 13), .13 + exchange_s, 1e-9);
  EXPECT_NEAR(epoch(128, 64, 13), .13 + exchange_s, 1e-9) << "nothing is trained ahead";
  // 10 + 10 + 3 minibatches; the overlap hides what it can of all exchanges but the first's.
  EXPECT_NEAR(epoch(10, 0, 23), .23 + 3 * exchange_s, 1e-9);
  EXPECT_NEAR(epoch(10, 5, 23), .23 + 3 * exchange_s - .05 - .02, 1e-9);
  EXPECT_NEAR(epoch(1, 0, 7), .07 + 7 * exchange_s, 1e-9);
  // A long epoch's mean round is a round.
  EXPECT_NEAR(PredictEpoch(FourHosts(1e6, 10, 5), 1'000'000, speed, network).round_s /
                  PredictRound(FourHosts(1e6, 10, 5), speed, network).round_s,
              1, 1e-4);
}

TEST(RoundTime, LateGradientsWaitForTheirExchangeAtTheEndOfAnEpoch) {
  RoundLoad load = FourHosts(1e6, 1);
  load.delay = 1;
  const RoundSpeed speed{.step_s = 1};
  const NetworkSpeed network{120e6, .01};
  const RoundTime alone = PredictRound(load, speed, network);
  EXPECT_NEAR(alone.round_s, 1, 1e-9);
  EXPECT_NEAR(PredictEpoch(load, 5, speed, network).round_s * 5, 5 + alone.exchange_s, 1e-9);
}

TEST(RoundTime, ServersOnHostsOfTheirOwnTakeEveryPush) {
  RoundLoad load = FourHosts(1e6, 1);
  load.servers = 1;
  const NetworkSpeed network{8e6, 0};
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(3),
              1e-9);  // three pulls leave
  load.beside = false;
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(4), 1e-9);
  load.servers = 4;
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(1), 1e-9);
}

TEST(RoundTime, FewServersOnTheWorkersHostsTakeMoreThanTheySend) {
  const NetworkSpeed network{8e6, 0};
  RoundLoad load = FourHosts(1e6, 1);
  load.servers = 1;
  load.partitions = 8;  // of the server's own host two
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(6), 1e-9);
  load.workers = 8;
  load.servers = 2;
  load.partitions = 16;  // 14 halves, and half a version
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(7.5), 1e-9);
  load.push_bytes = 100;
  load.pull_bytes = 1e6;
  load.partitions = 2;  // so that six workers pull nothing
  EXPECT_NEAR(PredictRound(load, {}, network).exchange_s, TransferTime(1), 1e-9);
}

TEST(RoundTime, TheWorkerWithTheMostPartitionsDeterminesTheRound) {
  RoundLoad load = FourHosts(0, 10);
  load.partitions = 5;
  EXPECT_NEAR(PredictRound(load, {.step_s = .01, .encode_s = .001}, {}).round_s, .202, 1e-9);
}

TEST(RoundTime, OneHostExchangesNothing) {
  RoundLoad load = FourHosts(1e6, 10);
  load.workers = load.servers = load.partitions = 1;
  EXPECT_NEAR(PredictRound(load, {.step_s = .01}, {1e6, 0}).utilisation(), 1, 1e-9);
}

TEST(TransferTime, BurstsThatExceedTheQueuesTakeLonger) {
  EXPECT_NEAR(TransferTime(.08), .1, 1e-9);
  EXPECT_NEAR(TransferTime(1.1) - TransferTime(.1), 2, 1e-9);
}

TEST(WindowGrowth, DoublesTheWindowEachRoundTrip) {
  // 1 MB/s for .1 s are 100 kB: windows of 14.48, 28.96, 57.92 kB do not fill it.
  EXPECT_NEAR(WindowGrowth(1e6, 1e6, .1), 3 * .1 - (14480 + 28960 + 57920) / 1e6, 1e-9);
  EXPECT_EQ(WindowGrowth(10'000, 1e6, .1), 0);  // fits into the first window
  EXPECT_EQ(WindowGrowth(1e6, 1e6, .01), 0);    // which fills this connection
  EXPECT_EQ(WindowGrowth(1e6, 0, .1), 0);
}

}  // namespace
}  // namespace kumo
