#include "cli/new_from_data.h"

#include <algorithm>
#include <cstdio>

#include "common/settings/config_file.h"

namespace kumo {
namespace {

constexpr int64_t kVisits = 40'000;  // samples that a run visits at least, all epochs together
constexpr int64_t kDetectorVisits = 20'000;  // likewise, with objects; BCCD needs 15,000
constexpr int64_t kEvaluations = 12;         // of a detector
constexpr int64_t kPartitions = 2;           // so that two workers share the work
constexpr int64_t kBlocksAnEpoch = 8;
constexpr int64_t kShortestBlock = 4;  // minibatches; shorter ones send as much as gradient mode
constexpr int64_t kLongestBlock = 50;
constexpr int64_t kHiddenRoot = 8;      // square root of the units of a hidden layer
constexpr int64_t kMostWindows = 2400;  // of a text, in an epoch
constexpr int64_t kSmallestMap = 8;     // height or width that is not halved any more

// Training that suits the number of samples.
struct Training {
  int64_t minibatch = 32;
  int64_t epochs = 10;
  int64_t block = 0;  // minibatches; 0: gradient mode
};

Training TrainingFor(int64_t samples) {
  Training training;
  if (samples < 1000) training.minibatch = samples < 200 ? 8 : 16;
  const int64_t enough = kVisits / std::max<int64_t>(1, samples) + 1;
  training.epochs = std::clamp<int64_t>(enough, 10, 60);
  const int64_t steps = samples / (kPartitions * training.minibatch);
  const int64_t block = std::min(steps / kBlocksAnEpoch, kLongestBlock);
  training.block = block < kShortestBlock ? 0 : block;
  return training;
}

bool IsText(const DescribedData& data) { return data.field == "tokens"; }
bool HasObjects(const DescribedData& data) { return data.objects > 0; }

std::string Number(int64_t number) { return std::to_string(number); }

// Lines of a section, with comments in one column.
class Lines {
 public:
  void Section(const std::string& name) { text_ += "\n[" + name + "]\n"; }
  void Set(const std::string& key, const std::string& value, const std::string& why = "") {
    std::string line = key + " = " + value;
    if (!why.empty()) {
      if (line.size() < kCommentColumn) line.resize(kCommentColumn, ' ');
      line += "  # " + why;
    }
    text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kCommentColumn = 26;
  std::string text_;
};

void SetData(const DescribedData& data, Lines* lines) {
  lines->Section("data");
  for (const auto& [key, value] : data.settings) {
    std::string why;
    if (key == "validation_share") why = "no validation set was found";
    if (key == "image_size") {
      why = HasObjects(data) ? "whole images are scaled, with their boxes"
                             : "images are cropped to this aspect ratio and scaled";
    }
    if (key == "photometric") why = "SSD's augmentation, in its order";
    if (key == "crop_area") why = "random crops of half to all of the area";
    if (key == "mean" || key == "std") why = "of the training images, after scaling to 0 .. 1";
    if (key == "classes" && value == "0") why = "labels are numbers";
    lines->Set(key, Quoted(value), why);
  }
  if (!IsText(data)) return;
  if (data.train_samples > kMostWindows) {
    lines->Set("windows", Number(kMostWindows), "of an epoch, drawn anew in each");
  }
  lines->Set("validation_share", "0.1", "the end of the text");
}

// As bccd_ssd300_slim, whose network it is.
void SetDetectorTraining(int64_t epochs, Lines* lines) {
  lines->Section("sync");
  lines->Set("mode", "gradient");
  lines->Set("partitions", Number(kPartitions), "workers that can share the work");
  lines->Set("minibatch", "8", "16 images a round");
  lines->Section("optimiser");
  lines->Set("type", "adamw");
  lines->Set("weight_decay", "0.0005");
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", "0.001");
  lines->Section("evaluation");
  lines->Set("every_epochs", Number(std::max<int64_t>(1, epochs / kEvaluations)));
  lines->Set("minibatch", "8");
  lines->Section("checkpoint");
  lines->Set("best", "map", "mean average precision");
}

void SetTextTraining(Lines* lines) {
  lines->Section("sync");
  lines->Set("mode", "gradient");
  lines->Set("partitions", "1");
  lines->Set("minibatch", "12");
  lines->Section("optimiser");
  lines->Set("type", "adamw");
  lines->Set("beta2", "0.99");
  lines->Set("weight_decay", "0.1");
  lines->Set("clip_norm", "1");
  lines->Section("schedule");
  lines->Set("type", "cosine");
  lines->Set("learning_rate", "0.001");
  lines->Set("final_rate", "0.0001");
  lines->Set("warmup", "0.5", "epochs");
}

void SetTraining(const DescribedData& data, const Training& training, Lines* lines) {
  const bool block = data.bytes && training.block > 0;
  lines->Section("sync");
  lines->Set("mode", block ? "block" : "gradient",
             block ? "partitions synchronise after blocks" : "too few samples for blocks");
  lines->Set("partitions", Number(kPartitions), "workers that can share the work");
  lines->Set("minibatch", Number(training.minibatch));
  if (block) {
    lines->Set("block", Number(training.block), "minibatches, for 8 blocks an epoch or more");
    lines->Set("warmup_samples", Number(data.train_samples), "the first epoch");
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

std::string Layer(const std::string& name, const std::string& layer) {
  return "layers { name: \"" + name + "\" " + layer + " }\n";
}

std::string Rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

// The last layer, and the loss. Outputs that are numbers begin with the labels' mean and with about
// their deviation, since small steps would not bring them there.
std::string Head(const DescribedData& data) {
  if (data.classes > 0) {
    return Layer("fc", "fully_connected { outputs: " + Number(data.classes) +
                           " weight { he_normal {} } }") +
           Layer("loss", "softmax_cross_entropy {}");
  }
  const std::string weight =
      data.label_deviation > 0
          ? " weight { normal { deviation: " + Rounded(data.label_deviation / kHiddenRoot) + " } }"
          : "";
  return Layer("fc", "fully_connected { outputs: " + Number(data.label_numbers) + weight +
                         " bias { constant { value: " + Rounded(data.label_mean) + " } } }") +
         Layer("loss", "mean_squared_error {}");
}

// Convolutions with batch normalisation; each stage halves height and width and doubles the
// channels.
std::string ImageLayers(const DescribedData& data) {
  const int64_t channels = data.extents[0];
  int64_t height = data.extents[1], width = data.extents[2];
  std::string text = "input { channels: " + Number(channels) + " height: " + Number(height) +
                     " width: " + Number(width) + " }\n\n";
  int64_t outputs = std::max(height, width) > 40 ? 16 : 32;
  for (int stage = 1;; ++stage) {
    const std::string n = Number(stage);
    text += Layer("conv" + n, "convolution { outputs: " + Number(outputs) +
                                  " kernel: 3 pad: 1 no_bias: true weight { he_normal {} } }");
    text += Layer("norm" + n, "batch_normalisation {}");
    text += Layer("relu" + n, "relu {}");
    if (std::min(height, width) < kSmallestMap) break;
    text += Layer("pool" + n, "max_pooling { kernel: 2 stride: 2 }");
    height /= 2;
    width /= 2;
    outputs = std::min<int64_t>(256, 2 * outputs);
  }
  return text + Layer("mean", "global_average_pooling {}") + Head(data);
}

std::string NumberLayers(const DescribedData& data) {
  int64_t inputs = 1;
  for (const int64_t extent : data.extents) inputs *= extent;
  std::string text = "input { extents: " + Number(inputs) + " }\n\n";
  // Brings features of all scales to one.
  text += Layer("norm0", "batch_normalisation {}");
  for (const char* n : {"1", "2"}) {
    text += Layer(std::string("hidden") + n,
                  "fully_connected { outputs: " + Number(kHiddenRoot * kHiddenRoot) +
                      " no_bias: true weight { he_normal {} } }");
    text += Layer(std::string("norm") + n, "batch_normalisation {}");
    text += Layer(std::string("relu") + n, "relu {}");
  }
  return text + Head(data);
}

}  // namespace

std::string SizesText(const DescribedData& data) {
  std::string shape;
  for (const int64_t extent : data.extents) shape += (shape.empty() ? "" : "x") + Number(extent);
  if (IsText(data)) shape += " tokens";
  return Number(data.train_samples) + " training samples of " + shape + ", " +
         Number(data.validation_samples) + " validation samples";
}

std::string ExperimentFor(const std::string& name, const DescribedData& data) {
  Training training = TrainingFor(data.train_samples);
  if (IsText(data)) training.epochs = 10;
  if (HasObjects(data)) {
    const int64_t enough = kDetectorVisits / std::max<int64_t>(1, data.train_samples) + 1;
    training.epochs = std::clamp<int64_t>(enough, 10, 200);
  }
  Lines lines;
  lines.Section("job");
  lines.Set("epochs", Number(training.epochs));
  lines.Section("network");
  lines.Set("file", name + ".pbtxt");
  SetData(data, &lines);
  if (IsText(data)) {
    SetTextTraining(&lines);
  } else if (HasObjects(data)) {
    SetDetectorTraining(training.epochs, &lines);
  } else {
    SetTraining(data, training, &lines);
  }
  return "# " + data.form + ": " + SizesText(data) +
         ".\n# Made by kumo new --data; its network is "
         "in " +
         name + ".pbtxt. kumo options lists all settings.\n" + lines.text();
}

std::string ModelFor(const DescribedData& data) {
  if (IsText(data)) return "char_gpt_small";
  return HasObjects(data) ? "bccd_ssd300_slim" : "";
}

std::string NetworkFor(const std::string& name, const DescribedData& data,
                       const std::string& model) {
  if (!ModelFor(data).empty()) return model;
  const bool image = data.extents.size() == 3 && data.bytes;
  std::string of_network = name;  // without '-', which the names of networks lack
  std::ranges::replace(of_network, '-', '_');
  return "name: \"" + of_network + "\"\n" + (image ? ImageLayers(data) : NumberLayers(data));
}

}  // namespace kumo
