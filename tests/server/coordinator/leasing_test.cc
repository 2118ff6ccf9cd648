#include "server/coordinator/leasing.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/job/phase.h"

namespace kumo {
namespace {

constexpr int kLeasedPartitions = 6;

Experiment::Cluster Cluster(StateLoss recovery = StateLoss::kContinue, int min_workers = 1) {
  Experiment::Cluster cluster;
  cluster.recovery = recovery;
  cluster.min_workers = min_workers;
  return cluster;
}

struct LeasedJob {
  explicit LeasedJob(const Experiment::Cluster& cluster = Cluster())
      : leasing(kLeasedPartitions, cluster) {}

  void Add(const PeerName& peer) { members.workers[peer].hello.set_name(peer); }
  void Begin(std::initializer_list<const char*> names) {
    for (const char* name : names) Add(name);
    leasing.Begin(members, 0, 0);
  }
  Effects Tell(MemberEvent::Kind kind, const PeerName& peer, bool handed_over = false) {
    MemberEvent event;
    event.kind = kind;
    event.peer = event.who = peer;
    event.why = "of a reason";
    event.handed_over = handed_over;
    return leasing.On(event, members, phase, open);
  }
  Effects Join(const PeerName& peer) {
    Add(peer);
    return Tell(MemberEvent::Kind::kJoined, peer);
  }
  Effects Lose(const PeerName& peer, bool handed_over = false) {
    members.workers.erase(peer);
    return Tell(MemberEvent::Kind::kGone, peer, handed_over);
  }
  std::multiset<PeerName> Holders() const {
    std::multiset<PeerName> holders;
    for (const auto& lease : leasing.table().leases()) holders.insert(lease.worker);
    return holders;
  }
  std::map<int, int64_t> OrdersOf(const PeerName& peer) const {
    wire::Orders orders;
    leasing.FillIn(peer, members, phase, &orders);
    std::map<int, int64_t> leases;
    for (const auto& lease : orders.leases()) leases[lease.partition()] = lease.from();
    return leases;
  }

  MemberTable members{1, "here"};
  Leasing leasing;
  JobPhase phase = JobPhase::kTraining;
  int64_t open = 0;
};

TEST(Leasing, APartitionIsOneWorkersWhateverBecomesOfThem) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    LeasedJob job;
    job.leasing.SetCarriesState(seed % 2 == 0);
    job.Begin({"a", "b"});
    int workers = 2;
    for (int64_t version = 1; version <= 60; ++version) {
      job.open = version;
      const TimeUs now = version * kSecond;
      if (rng.NextBelow(6) == 0) job.Join("w" + std::to_string(workers++));
      if (rng.NextBelow(6) == 0 && job.members.workers.size() > 1) {
        const auto victim =
            std::next(job.members.workers.begin(), rng.NextBelow(job.members.workers.size()));
        job.Lose(PeerName(victim->first), rng.NextBelow(2) == 0);
      }
      job.leasing.DirectMove(version + 1, rng.NextBelow(3) > 0, job.members, now);
      job.leasing.OnVersion(version, false, job.members, {});
      std::map<int, int> ordered;
      for (const auto& [peer, worker] : job.members.workers) {
        for (const auto& [partition, from] : job.OrdersOf(peer)) ++ordered[partition];
      }
      ASSERT_EQ(ordered.size(), static_cast<size_t>(kLeasedPartitions)) << "seed " << seed;
      for (const auto& [partition, holders] : ordered) ASSERT_EQ(holders, 1);
    }
  }
}

TEST(Leasing, ALostWorkersPartitionsGoToTheOthersAtOnce) {
  LeasedJob job;
  job.Begin({"a", "b", "c"});
  job.open = 5;
  const auto had = job.OrdersOf("b");
  ASSERT_EQ(had.size(), 2u);
  const Effects effects = job.Lose("b");
  EXPECT_TRUE(effects.orders && effects.go_back.empty());
  for (const auto& [partition, from] : had) {
    const auto& lease = job.leasing.table().leases()[partition];
    EXPECT_TRUE(lease.worker == "a" || lease.worker == "c");
    EXPECT_EQ(lease.from, 5);
  }
  EXPECT_EQ(job.leasing.first_loss(), "b: of a reason");
  job.leasing.OnVersion(6, false, job.members, {});
  EXPECT_EQ(job.leasing.first_loss(), "") << "it was made good";
}

TEST(Leasing, WhatALostWorkerCarriedTakesTheJobBackWhereThatIsWanted) {
  for (const bool exact : {false, true}) {
    for (const bool carries : {false, true}) {
      LeasedJob job(Cluster(exact ? StateLoss::kExact : StateLoss::kContinue));
      job.leasing.SetCarriesState(carries);
      EXPECT_EQ(job.leasing.loss_takes_back(), exact && carries);
      job.Begin({"a", "b"});
      const Effects effects = job.Lose("b");
      EXPECT_EQ(!effects.go_back.empty(), exact && carries);
      EXPECT_EQ(job.leasing.table().HasOrphans(), exact && carries);
    }
  }
}

TEST(Leasing, WithTooFewWorkersPartitionsStayNobodys) {
  LeasedJob job(Cluster(StateLoss::kContinue, /*min_workers=*/2));
  job.Begin({"a", "b"});
  job.Lose("b");
  EXPECT_EQ(job.Holders().count(""), 3u);
  EXPECT_EQ(job.OrdersOf("a").size(), 3u) << "it goes on with its own";
  job.Join("c");
  EXPECT_EQ(job.Holders().count(""), 0u);
}

// What a partition carries moves along with a version that is saved.
TEST(Leasing, WhoJoinsGetsPartitionsAtTheNextVersionThatIsSaved) {
  LeasedJob job;
  job.leasing.SetCarriesState(true);
  job.Begin({"a"});
  job.Join("b");
  EXPECT_TRUE(job.OrdersOf("b").empty());
  EXPECT_FALSE(job.leasing.DirectMove(3, /*may=*/false, job.members, 0));
  EXPECT_TRUE(job.leasing.DirectMove(4, true, job.members, 0));
  EXPECT_TRUE(job.leasing.DirectMove(4, true, job.members, 0)) << "asked again";
  job.leasing.OnVersion(3, false, job.members, {});
  EXPECT_TRUE(job.OrdersOf("b").empty());
  EXPECT_TRUE(job.leasing.OnVersion(4, false, job.members, {}).orders);
  const auto orders = job.OrdersOf("b");
  EXPECT_EQ(orders.size(), 3u);
  for (const auto& [partition, from] : orders) {
    EXPECT_EQ(from, 4);
    EXPECT_EQ(job.leasing.table().leases()[partition].before, "a");
  }
  EXPECT_FALSE(job.leasing.DirectMove(5, true, job.members, 0)) << "nobody has joined since";
}

// Shares of a job in which a block takes each worker as long as block_ms says, over `seconds`.
// Returns the rounds' times in milliseconds, one for each second, and counts the moves.
std::vector<double> RoundTimes(const std::function<double(const PeerName&, int)>& block_ms,
                               int seconds, LeasedJob* job, int* moves) {
  std::vector<double> rounds;
  for (int s = 0; s < seconds; ++s) {
    double longest = 0;
    for (auto& [peer, worker] : job->members.workers) {
      const int64_t count = job->leasing.table().Count(peer);
      if (count > 0) worker.block_ms = block_ms(peer, s);
      longest = std::max(longest, block_ms(peer, s) * static_cast<double>(count));
    }
    rounds.push_back(longest);
    if (job->leasing.DirectMove(s + 1, true, job->members, s * kSecond)) ++*moves;
    job->leasing.OnVersion(s + 1, false, job->members, {});
  }
  return rounds;
}

TEST(Leasing, AWorkerThatIsTooSlowForAnyPartitionIsTriedMoreAndMoreRarely) {
  LeasedJob job;
  job.Begin({"a", "b", "c", "d", "e", "slow"});
  int moves = 0;
  const auto slow = [](const PeerName& peer, int) { return peer == "slow" ? 300.0 : 100.0; };
  const std::vector<double> rounds = RoundTimes(slow, 6 * 3600, &job, &moves);
  EXPECT_LT(std::ranges::count(rounds, 300.0), std::ssize(rounds) / 20);
  EXPECT_LT(moves, 30) << "each is a checkpoint";
  EXPECT_GT(moves, 6) << "it may have become faster";
}

TEST(Leasing, AWorkerThatWasFrozenIsBackSoon) {
  LeasedJob job;
  job.Begin({"a", "b", "c", "d", "e", "frozen"});
  int moves = 0;
  const auto frozen = [](const PeerName& peer, int s) {
    return peer == "frozen" && s >= 300 && s < 350 ? 1e4 : 100.0;
  };
  const std::vector<double> rounds = RoundTimes(frozen, 1200, &job, &moves);
  EXPECT_EQ(moves, 2);
  EXPECT_EQ(rounds[330], 200) << "the others compute for it";
  EXPECT_EQ(rounds[400], 100);
}

TEST(Leasing, WhoIsToldToLeaveLetsGoAndIsReleased) {
  for (const bool carries : {false, true}) {
    LeasedJob job;
    job.leasing.SetCarriesState(carries);
    job.Begin({"a", "b"});
    job.members.workers["b"].leaving = true;
    job.Tell(MemberEvent::Kind::kLeaves, "b");
    const auto released = [&] {
      wire::Orders orders;
      job.leasing.FillIn("b", job.members, job.phase, &orders);
      return orders.released();
    };
    EXPECT_EQ(released(), !carries) << "its state moves with a version that is saved";
    if (!carries) continue;
    EXPECT_TRUE(job.leasing.DirectMove(4, true, job.members, 0));
    job.leasing.OnVersion(4, false, job.members, {});
    EXPECT_TRUE(released());
    EXPECT_EQ(job.OrdersOf("a").size(), 6u);
  }
}

TEST(Leasing, AJobThatGoesBackOrIsOverHasNoLeases) {
  LeasedJob job;
  job.Begin({"a", "b"});
  EXPECT_EQ(job.OrdersOf("a").size(), 3u);
  for (const JobPhase phase : {JobPhase::kWaiting, JobPhase::kFinished, JobPhase::kFailed}) {
    job.phase = phase;
    EXPECT_TRUE(job.OrdersOf("a").empty());
    EXPECT_TRUE(job.Join("c").go_back.empty());
  }
  job.leasing.GoBack();
  job.phase = JobPhase::kTraining;
  EXPECT_EQ(job.Holders().count(""), 6u);
}

// A new server 0 changes nothing before it knows whose the leases are.
TEST(Leasing, WhileClaimsAreCollectedNobodyGetsALease) {
  LeasedJob job;
  job.leasing.AskForClaims(10 * kSecond);
  job.Add("a");
  for (int p = 0; p < kLeasedPartitions - 1; ++p) {
    job.members.workers["a"].hello.add_claims()->set_partition(p);
  }
  job.leasing.TakeOver(0, -1, {}, 0);
  job.Join("b");
  EXPECT_TRUE(job.leasing.collects_claims());
  EXPECT_EQ(job.Holders().count(""), 6u);
  EXPECT_FALSE(job.leasing.DirectMove(1, true, job.members, 0));
  EXPECT_FALSE(job.leasing.SettleClaims(job.members, 0, 0, kSecond).orders);
  EXPECT_TRUE(job.leasing.SettleClaims(job.members, 0, 0, 10 * kSecond).orders);
  EXPECT_FALSE(job.leasing.collects_claims());
  EXPECT_EQ(job.OrdersOf("a").size(), 5u);
  EXPECT_EQ(job.OrdersOf("b").size(), 1u) << "unclaimed partitions";
}

constexpr uint32_t kSince = 4;
constexpr int64_t kVersion = 12;  // chunk 0 is back there
constexpr TimeUs kUntil = 10 * kSecond;

struct Workers {
  wire::Hello& Add(const PeerName& peer, uint32_t since = kSince) {
    members.workers[peer].hello.set_since(since);
    return members.workers[peer].hello;
  }
  void Claim(const PeerName& peer, int partition, int64_t from, int64_t round = kVersion,
             bool waits = false) {
    wire::Hello::Claim* claim = members.workers[peer].hello.add_claims();
    claim->set_partition(partition);
    claim->set_from(from);
    claim->set_round(round);
    claim->set_waits(waits);
  }
  void HandsOver(const PeerName& peer, int partition, int64_t version) {
    wire::Hello::HandOver* hand_over = members.workers[peer].hello.add_hands_over();
    hand_over->set_partition(partition);
    hand_over->set_version(version);
  }
  std::optional<LeaseRecovery::Claimed> Settle(TimeUs now, int partitions = 2,
                                               bool carries = true) {
    return claims.Settle(members, partitions, kSince, carries, now);
  }

  MemberTable members{1, "here"};
  LeaseRecovery claims;
};

Workers AskedWorkers() {
  Workers workers;
  workers.claims.AskUntil(kUntil);
  workers.claims.TakeOver(kVersion, kVersion + 1);
  return workers;
}

TEST(LeaseRecovery, NobodyIsAskedUnlessToldSo) {
  Workers workers;
  EXPECT_FALSE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil));
  workers.claims.AskUntil(kUntil);
  EXPECT_TRUE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil)) << "chunk 0 is not back";
  workers.claims.TakeOver(kVersion, kVersion + 1);
  workers.claims.Forget();
  EXPECT_FALSE(workers.Settle(kUntil));
}

TEST(LeaseRecovery, WhenEachPartitionIsClaimedItIsSettledOnceAndAtOnce) {
  Workers workers = AskedWorkers();
  workers.Add("a");
  workers.Add("b");
  workers.Claim("a", 1, 3);
  EXPECT_FALSE(workers.Settle(0));
  workers.Claim("b", 0, 5);
  const auto claimed = workers.Settle(0);
  ASSERT_TRUE(claimed);
  EXPECT_TRUE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "b");
  EXPECT_EQ(claimed->leases.leases()[0].from, 5);
  EXPECT_EQ(claimed->leases.leases()[1].worker, "a");
  EXPECT_FALSE(workers.claims.pending());
  EXPECT_FALSE(workers.Settle(kUntil));
}

TEST(LeaseRecovery, WhatNobodyClaimsInTimeIsNobodys) {
  Workers workers = AskedWorkers();
  workers.Add("a");
  workers.Claim("a", 1, 3);
  EXPECT_FALSE(workers.Settle(kUntil - 1));
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "");
  EXPECT_EQ(claimed->leases.leases()[1].worker, "a");
}

TEST(LeaseRecovery, WhoTookPartInAnotherPastClaimsNothing) {
  Workers workers = AskedWorkers();
  for (const uint32_t since : {kSince - 1, kSince + 1, 0u}) {
    const std::string peer = "w" + std::to_string(since);
    workers.Add(peer, since);
    workers.Claim(peer, 0, 3);
    workers.Claim(peer, 1, 3);
  }
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->leases.Count(""), 2);
}

// The job has gone on without the state of the partition; if it carries none, that is no
// loss.
TEST(LeaseRecovery, AClaimOfAnEarlierVersionIsLateWherePartitionsCarrySomething) {
  for (const bool carries : {true, false}) {
    Workers workers = AskedWorkers();
    workers.Add("a");
    workers.Claim("a", 0, 3, kVersion - 1);
    const auto claimed = workers.Settle(kUntil, 1, carries);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->complete, !carries);
  }
}

TEST(LeaseRecovery, OfTwoClaimsTheLaterLeaseCountsWhicheverIsReadFirst) {
  for (const auto& [old, young] : {std::pair("a", "b"), std::pair("b", "a")}) {
    Workers workers = AskedWorkers();
    workers.Add("a");
    workers.Add("b");
    workers.Claim(old, 0, 3);
    workers.Claim(young, 0, 7);
    const auto claimed = workers.Settle(0, 1);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->leases.leases()[0].worker, young);
    EXPECT_EQ(claimed->leases.leases()[0].from, 7);
  }
}

TEST(LeaseRecovery, WhoWaitsForWhatAPartitionCarriesNeedsTheOneWhoHadIt) {
  Workers workers = AskedWorkers();
  workers.Add("a");
  workers.Claim("a", 0, 9, kVersion, /*waits=*/true);
  EXPECT_FALSE(workers.Settle(0, 1));
  workers.Add("b");
  workers.HandsOver("b", 0, 9);
  const auto claimed = workers.Settle(0, 1);
  ASSERT_TRUE(claimed);
  EXPECT_TRUE(claimed->complete);
  EXPECT_EQ(claimed->leases.leases()[0].worker, "a");
  EXPECT_EQ(claimed->leases.leases()[0].before, "b");
}

TEST(LeaseRecovery, WhatAHelloMakesUpIsNoPartition) {
  Workers workers = AskedWorkers();
  workers.Add("a");
  for (const int partition : {-1, 2, INT32_MAX, INT32_MIN}) {
    workers.Claim("a", partition, INT64_MIN, INT64_MAX);
    workers.HandsOver("a", partition, INT64_MAX);
  }
  const auto claimed = workers.Settle(kUntil);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->leases.Count(""), 2);
}

// Chunk 0 has shown `kVersion`, and the one after it may have been made.
TEST(LeaseRecovery, OfRoundsThatThereCannotBeNothingIsClaimed) {
  constexpr int64_t kFurthest = kVersion + 1;
  const auto owner = [](int64_t from, int64_t round) {
    Workers workers = AskedWorkers();
    workers.Add("honest");
    workers.Claim("honest", 0, 3);
    workers.Add("liar");
    workers.Claim("liar", 0, from, round);
    return workers.Settle(0, 1)->leases.leases()[0];
  };
  EXPECT_EQ(owner(kFurthest, kFurthest).worker, "liar") << "leases have moved just now";
  for (const auto& [from, round] :
       {std::pair(kFurthest + 1, kFurthest + 1), std::pair(INT64_MAX, INT64_MAX),
        std::pair(INT64_MAX, kVersion), std::pair(kVersion, kVersion - 1),
        std::pair(int64_t{4}, kFurthest + 1), std::pair(int64_t{4}, INT64_MAX),
        std::pair(int64_t{-1}, kVersion), std::pair(INT64_MIN, INT64_MIN)}) {
    EXPECT_EQ(owner(from, round).worker, "honest") << from << ", " << round;
    EXPECT_EQ(owner(from, round).from, 3);
  }
}

TEST(RoundClock, NothingHasMovedSinceTheLastRoundOrWhateverElseMoved) {
  RoundClock clock;
  clock.Moved(10);
  EXPECT_EQ(clock.Standstill(15), 5);
  clock.OnClosed(20);
  EXPECT_EQ(clock.Standstill(21), 1);
}

TEST(RoundClock, ATypicalRoundIsOneOfTheQuickerOnesOfTheLast) {
  RoundClock clock;
  TimeUs now = 0;
  clock.Moved(now);
  for (int round = 0; round < 8; ++round) {
    clock.OnClosed(now += 100);
    EXPECT_EQ(clock.TypicalRound(), 0) << "too few";
  }
  clock.OnClosed(now += 5000);  // one that was held up
  EXPECT_EQ(clock.TypicalRound(), 100);
  for (int round = 0; round < 9; ++round) clock.OnClosed(now += 300);
  EXPECT_EQ(clock.TypicalRound(), 300) << "the others are long ago";
}

}  // namespace
}  // namespace kumo
