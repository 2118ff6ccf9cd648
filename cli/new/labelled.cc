#include "cli/new/labelled.h"

#include <algorithm>
#include <cstdio>

#include "cli/new/task.h"
#include "common/job/fields.h"

namespace kumo {
namespace {

// Samples that a run visits at least, all epochs together.
constexpr int64_t kLabelledVisits = 40'000;
constexpr int64_t kBlocksAnEpoch = 8;
constexpr int64_t kShortestBlock = 4;  // minibatches; shorter ones send as much as gradient mode
constexpr int64_t kLongestBlock = 50;

std::string Rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

}  // namespace

int64_t EpochsOfLabelled(int64_t samples) { return EpochsFor(kLabelledVisits, samples, 10, 60); }

void SetLabelledTraining(const DescribedData& data, int64_t /*epochs*/, ExperimentLines* lines) {
  const int64_t samples = data.train_samples;
  const int64_t minibatch = samples >= 1000 ? 32 : samples < 200 ? 8 : 16;
  const int64_t steps = samples / (kNewPartitions * minibatch);
  const int64_t length = std::min(steps / kBlocksAnEpoch, kLongestBlock);
  const bool block = data.bytes && length >= kShortestBlock;
  lines->Section("sync");
  lines->Set("mode", block ? "block" : "gradient",
             block ? "partitions synchronise after blocks" : "too few samples for blocks");
  lines->Set("partitions", kNewPartitions, "workers that can share the work");
  lines->Set("minibatch", minibatch);
  if (block) {
    lines->Set("block", length, "minibatches, for 8 blocks an epoch or more");
    lines->Set("warmup_samples", samples, "the first epoch");
  }
  lines->Section("optimiser");
  if (data.bytes) {
    lines->Set("type", "momentum");
    lines->Set("momentum", "0.9");
    lines->Set("weight_decay", "0.0005");
  } else {
    lines->Set("type", "adam", "steps do not depend on the numbers' scale");
  }
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", data.bytes ? "0.05" : "0.002");
  lines->Set("warmup", "1", "epochs");
}

std::string LayerLine(const std::string& name, const std::string& layer) {
  return "layers { name: \"" + name + "\" " + layer + " }\n";
}

std::string InputLine(const std::string& field, const std::string& size) {
  return "input { " + (field == kImageField ? "" : "name: \"" + field + "\" ") + size + " }\n";
}

std::string NameLine(const std::string& name) { return "name: \"" + name + "\"\n"; }

std::string LabelLayers(const DescribedData& data) {
  if (data.classes > 0) {
    return LayerLine("fc", "fully_connected { outputs: " + std::to_string(data.classes) +
                               " weight { he_normal {} } }") +
           LayerLine("loss", "softmax_cross_entropy {}");
  }
  const std::string weight =
      data.label_deviation > 0
          ? " weight { normal { deviation: " + Rounded(data.label_deviation / kHiddenRoot) + " } }"
          : "";
  return LayerLine("fc", "fully_connected { outputs: " + std::to_string(data.label_numbers) +
                             weight + " bias { constant { value: " + Rounded(data.label_mean) +
                             " } } }") +
         LayerLine("loss", "mean_squared_error {}");
}

}  // namespace kumo
