#include "cli/tune/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include <glog/logging.h>

#include "common/settings/option_value.h"

namespace kumo {
namespace {

constexpr int kBlocks[] = {8, 32, 128};
// Delays of gradients, in rounds. Longer ones cost more accuracy than blocks do.
constexpr int kDelays[] = {0, 1};
// Utilisation above which a longer block or a shorter codec brings nothing that matters.
constexpr double kEnough = .95;

// Modes, blocks and overlaps in the order of preference. Of blocks that are as long as an epoch or
// longer, which are all the same, only the shortest. minibatches: of a partition, in an epoch.
std::vector<RoundPrediction> Shapes(const Experiment& experiment, int64_t minibatches) {
  std::vector<RoundPrediction> shapes;
  for (const int delay : kDelays) {
    shapes.push_back(
        {.overlap = delay, .ends_warm_up = experiment.sync.warmup_samples > 0, .codec = nullptr});
  }
  std::set<int> blocks(std::begin(kBlocks), std::end(kBlocks));
  if (experiment.sync.mode == SyncMode::kBlock) blocks.insert(experiment.sync.block);
  for (const int block : blocks) {
    const auto shorter = blocks.lower_bound(block);
    if (shorter != blocks.begin() && *std::prev(shorter) >= minibatches) break;
    for (const int overlap : std::set<int>{0, block / 2}) {
      shapes.push_back({SyncMode::kBlock, block, overlap});
    }
  }
  return shapes;
}

}  // namespace

std::vector<std::string> RoundPrediction::Settings() const {
  std::vector<std::string> settings = {"sync.mode=" + WriteValue(mode)};
  if (mode == SyncMode::kBlock) settings.push_back("sync.block=" + std::to_string(block));
  if (ends_fragments && mode == SyncMode::kBlock) {
    settings.emplace_back("sync.fragments=1");
    settings.emplace_back("sync.local_share=0");
  }
  if (ends_warm_up) settings.emplace_back("sync.warmup_samples=0");
  settings.push_back("sync.push_codec=" + codec->name);
  settings.push_back("sync.pull_codec=" + codec->name);
  settings.push_back("sync.overlap=" + std::to_string(overlap));
  return settings;
}

Result<std::vector<RoundPrediction>> PredictRounds(
    const Experiment& experiment, const SpeedMeasurement& measured, RoundLoad load,
    const NetworkSpeed& network,
    const std::function<Status(const std::vector<std::string>& settings)>& allows) {
  std::vector<RoundPrediction> predictions;
  Status refused = Internal("no mode to predict");
  const double samples_of_step = static_cast<double>(load.partitions) * measured.minibatch;
  const auto minibatches =
      static_cast<int64_t>(std::ceil(measured.train_samples / samples_of_step));
  for (RoundPrediction shape : Shapes(experiment, minibatches)) {
    shape.ends_fragments = experiment.sync.fragments > 1 || experiment.sync.local_share > 0;
    const bool delayed = shape.mode == SyncMode::kGradient;
    load.steps = shape.block;
    load.delay = delayed ? shape.overlap : 0;
    load.overlap = delayed ? 0 : shape.overlap;
    for (const CodecMeasurement& codec : measured.codecs) {
      shape.codec = &codec;
      if (Status allowed = allows(shape.Settings()); !allowed.ok()) {
        refused = std::move(allowed);
        continue;
      }
      load.push_bytes = codec.push_bytes;
      load.pull_bytes = codec.pull_bytes;
      shape.time = PredictEpoch(load, minibatches, codec.speed, network);
      shape.samples_per_round =
          measured.train_samples / static_cast<double>(RoundsOfEpoch(load, minibatches));
      shape.samples_per_s = shape.samples_per_round / std::max(shape.time.round_s, 1e-9);
      predictions.push_back(shape);
    }
  }
  if (predictions.empty()) return refused;
  return predictions;
}

const RoundPrediction& BestPrediction(const std::vector<RoundPrediction>& predictions) {
  CHECK(!predictions.empty());
  const auto enough = std::ranges::find_if(
      predictions, [](const RoundPrediction& one) { return one.time.utilisation() >= kEnough; });
  if (enough != predictions.end()) return *enough;
  return *std::ranges::max_element(predictions, {}, &RoundPrediction::samples_per_s);
}

std::string ReasonFor(const RoundPrediction& best) {
  const std::string enough = std::to_string(std::lround(kEnough * 100)) + " % of the time\n";
  if (best.time.utilisation() < kEnough) {
    return "the fastest of these; none computes " + enough;
  }
  if (best.mode == SyncMode::kBlock) return "the shortest block that computes " + enough;
  if (best.overlap == 0) return "without blocks, workers compute " + enough;
  return "without blocks, workers compute " + enough + "Each gradient is applied " +
         std::to_string(best.overlap) +
         " round late: if the loss does not fall, halve schedule.learning_rate, or take blocks.\n";
}

}  // namespace kumo
