// Fragments and weights of a partition's own (sync.fragments, sync.local_share): the trainer's
// part.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "common/optimiser/schedule.h"
#include "tests/worker/training/trainer_harness.h"
#include "worker/training/trainer.h"

namespace kumo {
namespace {

// An epoch of one partition, written out: own weights walk on from round to round; those of a
// fragment that took part are merged with what the servers made of it, after `overlap` minibatches.
class FragmentsTest : public TrainerTest {
 protected:
  struct Case {
    int fragments = 1;
    int overlap = 0;
    double local_share = 0;
  };
  static Experiment Of(const Case& of) {
    Experiment e = Block();
    e.sync.partitions = 1;
    e.sync.block = 4;
    e.sync.fragments = of.fragments;
    e.sync.overlap = of.overlap;
    e.sync.local_share = of.local_share;
    e.block.reset_local_state = false;
    e.cluster.chunk_kib = 2;
    return e;
  }
};

TEST_F(FragmentsTest, OwnWeightsGoOnAndAreMergedFragmentByFragment) {
  for (const Case of : {Case{2, 0, 0}, Case{2, 1, 0}, Case{4, 0, 0.25}, Case{2, 1, 0.5},
                        Case{1, 0, 0.5}, Case{1, 2, 0.5}}) {
    SCOPED_TRACE(std::to_string(of.fragments) + " fragments, overlap " +
                 std::to_string(of.overlap) + ", share " + std::to_string(of.local_share));
    const Experiment e = Of(of);
    Worker worker(e);
    const JobPlan& plan = worker.shape.plan;
    const Schedule schedule = Schedule::Make(e.schedule, 90, e.job.epochs).value();
    const Range decayed = worker.layout().segment(Segment::kDecayed);
    const int64_t trained = worker.layout().segment(Segment::kUndecayed).end;
    std::vector<float> base = worker.InitialWeights();
    std::vector<float> own = base, ended = base;
    const auto share = static_cast<float>(of.local_share);
    // The servers' part: any function of the contribution will do.
    const auto served = [](float s, float end) { return s - 0.7f * (s - end) + 0.001f; };
    for (int64_t r = 0; !plan.Round(r).ends_epoch; ++r) {
      const RoundPlan round = plan.Round(r);
      const auto merge = [&] {
        if (r == 0) return;
        for (const Chunk& chunk : worker.map().chunks()) {
          for (int64_t at = chunk.range.begin; at < chunk.range.end && chunk.trained(); ++at) {
            if (!JobPlan::TakesPart(plan.Round(r - 1), chunk)) continue;
            const float with_steps = base[at] + (own[at] - ended[at]);
            own[at] = (1 - share) * with_steps + share * own[at];
          }
        }
      };
      if (of.overlap == 0) merge();
      for (int64_t at = trained; at < std::ssize(own); ++at) own[at] = base[at];
      WalkThrough(worker, r, 0, &own, [&](int i, int size, const std::vector<float>& g) {
        const float rate = schedule.RateAt(round.first_sample + i * e.sync.minibatch, size);
        for (int64_t at = 0; at < trained; ++at) {
          own[at] -= rate * (g[at] + (at < decayed.end ? 0.01f * own[at] : 0.0f));
        }
        if (i + 1 == of.overlap) merge();
      });
      ended = own;
      const TrainedBlock block = worker.Train(r, 0);
      const std::vector<float> got = worker.Decode(block, r);
      for (const Chunk& chunk : worker.map().chunks()) {
        const bool takes_part = JobPlan::TakesPart(round, chunk);
        ASSERT_EQ(block.contributions[chunk.index].empty(), !takes_part);
        if (!chunk.trained()) continue;
        for (int64_t at = chunk.range.begin; at < chunk.range.end && takes_part; ++at) {
          ASSERT_NEAR(got[at], base[at] - own[at], 4e-6f * (1 + std::abs(base[at])))
              << r << " " << at;
          base[at] = served(base[at], own[at]);
        }
      }
      if (of.overlap > 0) (void)worker.TrainAhead(r + 1, 0);
      worker.InstallAll(Chunks(worker, base));
    }
  }
}

TEST_F(FragmentsTest, APartitionsOwnWeightsMoveToAnotherWorker) {
  for (const double share : {0.0, 0.5}) {
    const Experiment e = Of({2, 0, share});
    Worker stays(e), moves(e), forgets(e);
    const TrainedBlock first = stays.Train(0, 0, /*save=*/true);
    moves.trainer->Adopt({0, first.carried, 1});
    forgets.trainer->Adopt({0, {}, 1});
    const TrainedBlock expected = stays.Train(1, 0);
    EXPECT_TRUE(SameBytes(moves.Train(1, 0), expected));
    const TrainedBlock forgotten = forgets.Train(1, 0);
    EXPECT_FALSE(SameBytes(forgotten, expected));
    // Who has lost them goes on from the weights of the servers, as in the first round.
    Worker starts(Of({2, 0, 0}));
    starts.trainer->Adopt({0, {}, 1});
    const std::vector<float> expected_then = starts.Decode(starts.Train(1, 0), 1);
    const std::vector<float> got = forgets.Decode(forgotten, 1);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected_then[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace kumo
