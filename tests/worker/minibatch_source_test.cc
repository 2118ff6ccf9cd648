// On each device that the executable has: the CPU, and the simulated GPU in one of the two.
#include "worker/minibatch_source.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/trainer_harness.h"
#include "worker/opened_job.h"

namespace kumo {
namespace {

class MinibatchSourceTest : public TrainerTest {
 protected:
  // A job's network and data, with the network's initial weights.
  struct Opened {
    explicit Opened(const Experiment& experiment) : job(OpenJob(experiment).value()) {
      const ParameterLayout& layout = job.spec.layout;
      weights = {*job.backend, layout.size(), "weights"};
      gradients = {*job.backend, layout.size(), "gradients"};
      std::vector<float> initial(layout.size());
      CHECK(job.net->InitialWeights(1, layout, initial).ok());
      job.backend->Write(initial.data(), initial.size() * sizeof(float), weights.data());
      CHECK(job.net->Bind(layout, weights.data(), gradients.data()).ok());
      loader = job.backend->MakeInputLoader(job.net->input(), job.Pixels(experiment));
    }
    OpenedJob job;
    DeviceArray<float> weights, gradients;
    std::unique_ptr<InputLoader> loader;
  };

  // The evaluations of minibatches of `positions`, and their sizes.
  struct Seen {
    std::vector<int> sizes;
    std::vector<double> losses;
    bool operator==(const Seen&) const = default;
  };
  static Seen Evaluate(Opened* opened, const BatchStreamOptions& options, int64_t reserve,
                       Range positions) {
    OpenedJob& job = opened->job;
    MinibatchSource source(job.datasets.train.get(), options, opened->loader.get(), reserve);
    source.Start(/*epoch=*/1, positions);
    Seen seen;
    while (true) {
      const int size = source.LoadNext(job.net.get()).value();
      if (size == 0) return seen;
      job.net->Evaluate();
      seen.sizes.push_back(size);
      seen.losses.push_back(job.net->TakeSums().value().loss_sum);
    }
  }
  static BatchStreamOptions OptionsOf(const Experiment& e, const Opened& opened, int minibatch) {
    return {.seed = 3,
            .minibatch = minibatch,
            .prefetch = 2,
            .augmentation = {.pad = e.data.crop_pad, .flip = e.data.flip},
            .pixels = opened.job.Pixels(e)};
  }
  static std::vector<Experiment> OnEachDevice() {
    std::vector<Experiment> all;
    for (const std::string device : {"cpu", "cuda:0"}) {
      for (Experiment e : {Block(), Augmented(Block())}) {
        e.network.device = device;
        e.network.deterministic = true;
        e.sync.minibatch = 16;
        if (OpenJob(e).ok()) all.push_back(std::move(e));
      }
    }
    return all;
  }
};

TEST_F(MinibatchSourceTest, ARangeComesInFullMinibatchesAndWhatIsLeft) {
  for (const Experiment& e : OnEachDevice()) {
    Opened opened(e);
    for (const Range positions : {Range{0, 90}, Range{5, 6}, Range{13, 13}, Range{60, 90}}) {
      for (const int minibatch : {1, 7, 16}) {
        const Seen seen = Evaluate(&opened, OptionsOf(e, opened, minibatch), 0, positions);
        int64_t left = positions.size();
        for (const int size : seen.sizes) {
          EXPECT_EQ(size, std::min<int64_t>(minibatch, left));
          left -= size;
        }
        EXPECT_EQ(left, 0) << e.network.device;
      }
    }
  }
}

// Kept on the device or sent to it; the CPU keeps nothing.
TEST_F(MinibatchSourceTest, WhereTheSamplesLieChangesNoBit) {
  for (const Experiment& e : OnEachDevice()) {
    Opened opened(e);
    const BatchStreamOptions options = OptionsOf(e, opened, 16);
    const Seen kept = Evaluate(&opened, options, /*reserve=*/0, {3, 90});
    const Seen sent = Evaluate(&opened, options, std::numeric_limits<int64_t>::max(), {3, 90});
    EXPECT_EQ(kept, sent) << e.network.device;
  }
}

// Each device makes the same inputs of the same windows; layers round differently.
TEST_F(MinibatchSourceTest, DevicesAgreeOnWhatTheyAreShown) {
  std::map<bool, Seen> first;  // by whether images are augmented
  for (const Experiment& e : OnEachDevice()) {
    Opened opened(e);
    const Seen seen = Evaluate(&opened, OptionsOf(e, opened, 16), 0, {0, 90});
    const Seen& expected = first.try_emplace(e.data.flip, seen).first->second;
    EXPECT_EQ(seen.sizes, expected.sizes);
    for (size_t i = 0; i < seen.losses.size(); ++i) {
      EXPECT_NEAR(seen.losses[i], expected.losses[i], 1e-2 * expected.losses[i]);
    }
  }
  EXPECT_NE(first.at(false), first.at(true)) << "windows are drawn";
}

TEST_F(MinibatchSourceTest, WhatIsCancelledIsForgotten) {
  for (const Experiment& e : OnEachDevice()) {
    Opened opened(e);
    OpenedJob& job = opened.job;
    MinibatchSource source(job.datasets.train.get(), OptionsOf(e, opened, 16), opened.loader.get(),
                           0);
    source.Start(0, {0, 90});
    EXPECT_EQ(source.LoadNext(job.net.get()).value(), 16);
    source.Cancel();
    source.Start(0, {4, 9});
    EXPECT_EQ(source.LoadNext(job.net.get()).value(), 5);
    EXPECT_EQ(source.LoadNext(job.net.get()).value(), 0);
  }
}

}  // namespace
}  // namespace kumo
