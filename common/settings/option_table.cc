#include "common/settings/option_table.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/codec/codec.h"
#include "common/optimiser/optimiser.h"
#include "common/settings/option_words.h"

namespace kumo {
namespace {

// Reaches a field of an Experiment. A plain function, so that Row is compiled for each type of
// value and not for each field.
// clang-format takes the + for a sum.
// clang-format off
#define KUMO_FIELD(path) +[](Experiment& e) -> auto& { return e.path; }
// clang-format on

constexpr bool kResult = true;
constexpr double kAnyCount = 1e15;  // samples, rounds: a double still holds it exactly

template <typename Value>
constexpr OptionType TypeOf() {
  if constexpr (std::is_same_v<Value, bool>) return OptionType::kFlag;
  if constexpr (std::is_integral_v<Value>) return OptionType::kInteger;
  if constexpr (std::is_floating_point_v<Value>) return OptionType::kNumber;
  if constexpr (std::is_same_v<Value, std::vector<double>>) return OptionType::kNumbers;
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return OptionType::kTexts;
  return OptionType::kText;
}

template <typename Value>
Option Row(const char* key, Value& (*field)(Experiment&), const char* unit, Allowed allowed,
           bool result, const char* help) {
  if constexpr (std::is_same_v<Value, bool>) allowed.text = "";
  Option option;
  option.key = key;
  option.unit = unit;
  option.help = help;
  option.result = result;
  option.type = TypeOf<Value>();
  option.read = [field, allowed](std::string_view text, Experiment* experiment) {
    return ReadValue(text, allowed, &field(*experiment));
  };
  option.write = [field](const Experiment& experiment) {
    return WriteValue(field(const_cast<Experiment&>(experiment)));  // which is only read
  };
  option.allowed = std::move(allowed);
  if constexpr (std::is_same_v<Value, bool>) option.allowed.text = "true or false";
  return option;
}

Option WithDefault(Option option, const char* default_text) {
  option.default_text = default_text;
  return option;
}

Option WithPath(Option option, PathBase base, PathKind path = PathKind::kNone) {
  option.base = base;
  option.path = path;
  return option;
}

// Seconds. What is shorter would be no time between two of whatever it is, and no limit for
// anybody.
constexpr double kLeastTime = 0.01;

Allowed Any() { return {}; }
Allowed Between(double min, double max) { return {.min = min, .max = max}; }
Allowed AtLeast(double min) { return {.min = min}; }
Allowed Above(double min) { return {.min = min, .min_excluded = true}; }
Allowed AboveTo(double min, double max) { return {.min = min, .max = max, .min_excluded = true}; }
Allowed ToBelow(double min, double max) { return {.min = min, .max = max, .max_excluded = true}; }
Allowed OneOf(std::vector<std::string> values) { return {.values = std::move(values)}; }
Allowed Saying(const char* text) { return {.text = text}; }

std::vector<std::string> CodecNames() {
  std::vector<std::string> names;
  for (const Codec* codec : AllCodecs()) names.emplace_back(codec->name());
  return names;
}

std::vector<std::string> OptimiserNames() {
  const auto types = OptimiserTypes();
  return {types.begin(), types.end()};
}

// What a stream of CNTK's text format may be called.
Allowed StreamName() { return {.characters = "-_.", .text = "letters, digits, '-', '_' and '.'"}; }

// What network.device may say.
Allowed Devices() {
  Allowed devices = OneOf({"cpu", "cuda"});
  for (int i = 0; i < 16; ++i) devices.values.push_back("cuda:" + std::to_string(i));
  devices.text = "cpu, cuda, or cuda:0 .. cuda:15";
  return devices;
}

void AddJob(std::vector<Option>* rows) {
  rows->push_back(
      WithDefault(Row("job.name", KUMO_FIELD(job.name), "",
                      {.characters = "-_", .text = "letters, digits, '-' and '_'"}, kResult,
                      "Names the job in logs, checkpoints and messages between processes"),
                  "the file's name without .conf"));
  rows->push_back(Row("job.seed", KUMO_FIELD(job.seed), "", Between(0, 9007199254740991.0), kResult,
                      "Seed of every random stream: initial weights, shuffling, crops, dropout"));
  rows->push_back(Row("job.epochs", KUMO_FIELD(job.epochs), "epochs", Between(1, 1000000), kResult,
                      "Passes over the training set"));
}

void AddNetwork(std::vector<Option>* rows) {
  rows->push_back(WithPath(
      WithDefault(Row("network.file", KUMO_FIELD(network.file), "", Any(), kResult,
                      "The network as a text protobuf; a relative path in the experiment file is "
                      "relative to that file, on the command line to the working directory"),
                  "required"),
      PathBase::kExperimentFile, PathKind::kBaseName));
  rows->push_back(Row("network.device", KUMO_FIELD(network.device), "", Devices(), !kResult,
                      "What the workers compute on: the CPU, or the GPU of that number (cuda: the "
                      "first)"));
  rows->push_back(Row(
      "network.precision", KUMO_FIELD(network.precision), "", OneOf({"fp32", "bf16", "fp16"}),
      kResult,
      "Numbers of activations and of the products' operands. bf16 and fp16 need a GPU; weights, "
      "optimisers and sums stay float32, and fp16 scales the loss as needed"));
  rows->push_back(Row("network.threads", KUMO_FIELD(network.threads), "threads", Between(1, 1024),
                      kResult,
                      "Arithmetic threads of one worker; sums depend on it in the last bits"));
  rows->push_back(
      Row("network.tf32", KUMO_FIELD(network.tf32), "", Any(), kResult,
          "On a GPU, products of float32 numbers may be rounded to TF32: faster, with 10 "
          "bits of mantissa instead of 23"));
  rows->push_back(
      Row("network.deterministic", KUMO_FIELD(network.deterministic), "", Any(), !kResult,
          "On a GPU, only algorithms that give the same bits each time, on the same kind "
          "of GPU"));
  rows->push_back(WithPath(
      Row("network.initial_weights", KUMO_FIELD(network.initial_weights), "", Any(), kResult,
          "A checkpoint's folder, a job's output folder (its newest one), or a file of tensors "
          "(.safetensors, .npz), relative as network.file: tensors of the same name and shape "
          "begin "
          "with its weights, others at random; empty: all at random"),
      PathBase::kExperimentFile, PathKind::kBaseName));
  rows->push_back(WithPath(
      Row("network.initial_names", KUMO_FIELD(network.initial_names), "", Any(), kResult,
          "A text file, relative as network.file, of what network.initial_weights calls its "
          "tensors, a line for each: `its name = ours`; empty: by the same names"),
      PathBase::kExperimentFile, PathKind::kBaseName));
}

void AddData(std::vector<Option>* rows) {
  const auto add_file = [rows](const char* key, auto field, const char* help) {
    rows->push_back(WithPath(Row(key, field, "", Any(), kResult, help), PathBase::kDataDirectory,
                             PathKind::kBaseNameIfAbsolute));
  };
  rows->push_back(
      Row("data.reader", KUMO_FIELD(data.reader), "",
          OneOf({"idx", "image_folder", "image_map", "cifar", "ctf", "text"}), kResult,
          "The format of the data files: IDX, as MNIST has it; a folder with a folder of "
          "JPEG and PNG images per class; a text file of images' paths and classes; the binary "
          "files of CIFAR-10 and CIFAR-100; CNTK's text format; a text, to learn what "
          "follows on what"));
  rows->push_back(
      WithPath(WithDefault(Row("data.directory", KUMO_FIELD(data.directory), "", Any(), !kResult,
                               "Where relative data files are, relative to the working directory"),
                           "$KUMO_DATA"),
               PathBase::kWorkingDirectory));
  rows->push_back(
      WithPath(WithDefault(Row("data.cache", KUMO_FIELD(data.cache), "", Any(), !kResult,
                               "Folder on this machine where large packed data files are kept "
                               "unpacked, and images decoded, once for all processes; each has "
                               "its own copy in memory "
                               "where that cannot be written"),
                           "$XDG_CACHE_HOME/kumo, else ~/.cache/kumo"),
               PathBase::kWorkingDirectory));
  add_file("data.train_images", KUMO_FIELD(data.train_images),
           "What to train on: a file, maybe compressed (.gz), or a folder, maybe inside an "
           "archive (.tar, .tar.gz, .zip): photos.tar.gz/train");
  add_file("data.train_labels", KUMO_FIELD(data.train_labels),
           "Their labels, where these are in a file of their own (idx)");
  add_file("data.validation_images", KUMO_FIELD(data.validation_images), "Images to evaluate on");
  add_file("data.validation_labels", KUMO_FIELD(data.validation_labels), "Their labels");
  add_file("data.text", KUMO_FIELD(data.text),
           "A text to train on and to evaluate on, maybe compressed (.gz)");
  rows->push_back(Row("data.tokens", KUMO_FIELD(data.tokens), "", OneOf({"characters", "bytes"}),
                      kResult,
                      "What a text is a sequence of: its characters (UTF-8), numbered in the order "
                      "of their code points, or its bytes"));
  rows->push_back(Row("data.window", KUMO_FIELD(data.window), "tokens", Between(1, 1 << 20),
                      kResult, "The length of a sample of a text"));
  rows->push_back(Row("data.windows", KUMO_FIELD(data.windows), "samples", Between(0, kAnyCount),
                      kResult,
                      "Samples of an epoch of a text, at places that are drawn anew in each epoch; "
                      "0: as many as lie side by side in it"));
  rows->push_back(Row("data.validation_share", KUMO_FIELD(data.validation_share), "",
                      Between(0.0001, 0.9999), kResult,
                      "The share of a text, at its end, that is not trained on but evaluated"));
  rows->push_back(
      Row("data.image_size", KUMO_FIELD(data.image_size), "", Any(), kResult,
          "Channels x height x width that all images are made to have, as 3x224x224: cut "
          "to these proportions around their middle and scaled; empty: as they are, all "
          "of one size"));
  rows->push_back(Row("data.damaged", KUMO_FIELD(data.damaged), "", OneOf({"refuse", "skip"}),
                      kResult,
                      "What is done about images that cannot be read: end with an error, or leave "
                      "them out and say how many"));
  rows->push_back(Row(
      "data.decode", KUMO_FIELD(data.decode), "", OneOf({"auto", "start", "demand"}), !kResult,
      "When images are decoded: all at the start, into memory; each time when one is needed; or "
      "the latter where the former would take more than a quarter of the machine's memory, and "
      "where data.crop_area or data.shorter_side want images in their own sizes"));
  rows->push_back(Row("data.ctf_features", KUMO_FIELD(data.ctf_features), "", StreamName(), kResult,
                      "The stream of numbers that the network takes (ctf)"));
  rows->push_back(Row("data.ctf_labels", KUMO_FIELD(data.ctf_labels), "", StreamName(), kResult,
                      "The stream of labels: a class' number, or a 1 in its place (ctf)"));
  rows->push_back(Row("data.scale", KUMO_FIELD(data.scale), "", Above(0), kResult,
                      "Pixels are multiplied by it; the default is 1/255"));
  rows->push_back(Row("data.subtract_mean", KUMO_FIELD(data.subtract_mean), "", Any(), kResult,
                      "Subtract the mean image of the training set (its first data.train_limit "
                      "samples) from every image, before data.scale"));
  rows->push_back(Row("data.mean", KUMO_FIELD(data.mean), "", Between(-1e6, 1e6), kResult,
                      "Subtract from each channel, after data.scale: 0.4914,0.4822,0.4465 are "
                      "CIFAR-10's red, green and blue; empty: nothing"));
  rows->push_back(Row("data.deviation", KUMO_FIELD(data.deviation), "", AboveTo(0, 1e6), kResult,
                      "Divide each channel by, after data.scale and data.mean: 0.247,0.243,0.261; "
                      "empty: by nothing"));
  rows->push_back(Row(
      "data.crop_area", KUMO_FIELD(data.crop_area), "", AboveTo(0, 1), kResult,
      "Train on random rectangles of the images, of shares of their areas between these two "
      "(0.08,1), scaled to data.image_size or to the images' own size; empty: on whole images"));
  rows->push_back(Row("data.crop_aspect", KUMO_FIELD(data.crop_aspect), "", Between(0.01, 100),
                      kResult, "Width / height of these rectangles lies between these two"));
  rows->push_back(Row(
      "data.shorter_side", KUMO_FIELD(data.shorter_side), "pixels", Between(0, 8192), kResult,
      "Evaluate on images whose shorter side is scaled to so much, cut to data.image_size or to "
      "their own size around the middle, as 256 for images of 224x224; 0: on images as they "
      "are kept"));
  rows->push_back(Row("data.crop_pad", KUMO_FIELD(data.crop_pad), "pixels", Between(0, 1024),
                      kResult,
                      "Train on random windows, of the images' own size, of images that are padded "
                      "by so much on every side; 0: on the images themselves"));
  rows->push_back(Row("data.pad_value", KUMO_FIELD(data.pad_value), "", Between(0, 255), kResult,
                      "The pixels that data.crop_pad adds"));
  rows->push_back(Row("data.flip", KUMO_FIELD(data.flip), "", Any(), kResult,
                      "Mirror each training image left to right with probability 1/2, anew in each "
                      "epoch"));
  const auto add_colour = [rows](const char* key, auto field, double most, const char* help) {
    rows->push_back(Row(key, field, "", Between(0, most), kResult, help));
  };
  add_colour("data.brightness", KUMO_FIELD(data.brightness), 4,
             "Multiply each training image by a random factor, 1 - x .. 1 + x; the four changes of "
             "colours come in a random order, by torchvision's formulas");
  add_colour("data.contrast", KUMO_FIELD(data.contrast), 4,
             "Likewise the difference of its pixels from their mean grey");
  add_colour("data.saturation", KUMO_FIELD(data.saturation), 4,
             "Likewise the difference of each pixel from its own grey; of images with colours");
  add_colour("data.hue", KUMO_FIELD(data.hue), 0.5,
             "Turn its hues by up to this part of their circle, either way");
  rows->push_back(Row("data.cutout", KUMO_FIELD(data.cutout), "pixels", Between(0, 8192), kResult,
                      "Paint a square of this side, at a random place of each training image, with "
                      "data.mean, or else grey (128); 0: none"));
  rows->push_back(
      Row("data.mixup", KUMO_FIELD(data.mixup), "", Between(0, 2), kResult,
          "Mix each training image with another one, and their labels, with weights that "
          "are drawn from Beta(mixup, mixup): the higher, the more even, and 0.05 at least; "
          "0: none"));
  rows->push_back(
      Row("data.classes", KUMO_FIELD(data.classes), "classes", Between(0, 1000000), kResult,
          "Labels are below it, so at least 2; those of IDX files are below 256. 0: labels "
          "are numbers, as mean_squared_error takes them (reader ctf)"));
  rows->push_back(Row("data.train_limit", KUMO_FIELD(data.train_limit), "samples",
                      Between(0, kAnyCount), kResult,
                      "Use only the first so many samples to train; 0: all"));
  rows->push_back(Row("data.validation_limit", KUMO_FIELD(data.validation_limit), "samples",
                      Between(0, kAnyCount), kResult,
                      "Use only the first so many samples to evaluate; 0: all"));
  rows->push_back(Row("data.prefetch", KUMO_FIELD(data.prefetch), "minibatches", Between(1, 1024),
                      !kResult, "Minibatches prepared ahead of the training thread"));
  rows->push_back(Row("data.threads", KUMO_FIELD(data.threads), "threads", Between(0, 256),
                      !kResult,
                      "That read, decode and transform samples in each worker; 0: one, or, of data "
                      "that is not in memory, as many as there are cores, up to 8"));
}

void AddSync(std::vector<Option>* rows) {
  rows->push_back(Row("sync.mode", KUMO_FIELD(sync.mode), "", OneOf({"gradient", "block"}), kResult,
                      "gradient: synchronise after each minibatch; block: after each block of "
                      "local minibatches"));
  rows->push_back(Row("sync.partitions", KUMO_FIELD(sync.partitions), "", Between(1, 4096), kResult,
                      "Logical learners that each round's samples are divided among; any number "
                      "of workers computes them"));
  rows->push_back(Row("sync.minibatch", KUMO_FIELD(sync.minibatch), "samples", Between(1, 1000000),
                      kResult, "Samples of one partition's minibatch"));
  rows->push_back(Row("sync.block", KUMO_FIELD(sync.block), "minibatches", Between(1, 1000000),
                      kResult, "Length of a block (block mode)"));
  rows->push_back(Row("sync.warmup_samples", KUMO_FIELD(sync.warmup_samples), "samples",
                      Between(0, kAnyCount), kResult,
                      "Train so many samples in gradient mode and full precision before the first "
                      "block (block mode)"));
  rows->push_back(Row("sync.push_codec", KUMO_FIELD(sync.push_codec), "", OneOf(CodecNames()),
                      kResult, "How contributions are coded"));
  rows->push_back(Row("sync.pull_codec", KUMO_FIELD(sync.pull_codec), "", OneOf({"fp32", "fp16"}),
                      kResult, "How weights are coded on their way to the workers"));
  rows->push_back(Row("sync.error_feedback", KUMO_FIELD(sync.error_feedback), "", Any(), kResult,
                      "Keep what a push's coding lost and add it to the next push"));
}

void AddBlock(std::vector<Option>* rows) {
  rows->push_back(Row("block.rule", KUMO_FIELD(block.rule), "",
                      OneOf({"block_momentum", "average"}), kResult,
                      "What the servers do with a round's mean block step (block mode)"));
  rows->push_back(Row("block.convention", KUMO_FIELD(block.convention), "",
                      OneOf({"paper", "cntk"}), kResult,
                      "Whose formula block_momentum follows: Chen & Huo's or CNTK's"));
  rows->push_back(Row("block.nesterov", KUMO_FIELD(block.nesterov), "", Any(), kResult,
                      "Nesterov's variant of block momentum"));
  rows->push_back(Row("block.momentum", KUMO_FIELD(block.momentum), "", ToBelow(0, 1), kResult,
                      "eta: share of the last block step that is repeated (paper)"));
  rows->push_back(Row("block.learning_rate", KUMO_FIELD(block.learning_rate), "", AboveTo(0, 1000),
                      kResult, "zeta (paper) or blockLR (cntk)"));
  rows->push_back(Row("block.time_constant", KUMO_FIELD(block.time_constant), "samples", AtLeast(0),
                      kResult,
                      "The momentum as a time constant (cntk); 0: -B / ln(1 - 1/N), B the samples "
                      "of a full block, N the partitions"));
  rows->push_back(Row("block.reset_local_state", KUMO_FIELD(block.reset_local_state), "", Any(),
                      kResult, "Restart the local optimiser's state with each block"));
}

void AddOptimiser(std::vector<Option>* rows) {
  rows->push_back(Row("optimiser.type", KUMO_FIELD(optimiser.type), "", OneOf(OptimiserNames()),
                      kResult,
                      "Steps on minibatches: on the servers in gradient mode, on the workers in "
                      "block mode"));
  rows->push_back(Row("optimiser.momentum", KUMO_FIELD(optimiser.momentum), "", ToBelow(0, 1),
                      kResult, "Of momentum and nesterov"));
  rows->push_back(Row("optimiser.unit_gain", KUMO_FIELD(optimiser.unit_gain), "", Any(), kResult,
                      "Momentum is a mean of gradients, not a sum: each counts 1 - momentum of "
                      "itself (CNTK's default; momentum, nesterov)"));
  rows->push_back(Row("optimiser.beta1", KUMO_FIELD(optimiser.beta1), "", ToBelow(0, 1), kResult,
                      "Decay of the mean gradient (adam, adamw)"));
  rows->push_back(Row("optimiser.beta2", KUMO_FIELD(optimiser.beta2), "", ToBelow(0, 1), kResult,
                      "Decay of the mean squared gradient (adam, adamw)"));
  rows->push_back(Row("optimiser.epsilon", KUMO_FIELD(optimiser.epsilon), "", AboveTo(0, 1),
                      kResult, "Added to the divisor (adam, adamw)"));
  rows->push_back(Row("optimiser.weight_decay", KUMO_FIELD(optimiser.weight_decay), "",
                      ToBelow(0, 1), kResult,
                      "L2 added to the gradient of weights, not of biases; decoupled with adamw"));
  rows->push_back(Row("optimiser.clip_norm", KUMO_FIELD(optimiser.clip_norm), "", AtLeast(0),
                      kResult,
                      "The gradients of each minibatch of a partition are scaled down until their "
                      "L2 norm is no more than this, before the decay; 0: never"));
}

void AddSchedule(std::vector<Option>* rows) {
  rows->push_back(Row("schedule.type", KUMO_FIELD(schedule.type), "",
                      OneOf({"constant", "step", "multistep", "stages", "poly", "cosine"}), kResult,
                      "How the learning rate goes on"));
  rows->push_back(Row("schedule.learning_rate", KUMO_FIELD(schedule.learning_rate), "",
                      AboveTo(0, 1000), kResult, "The base rate; not of stages"));
  rows->push_back(Row("schedule.per", KUMO_FIELD(schedule.per), "", OneOf({"minibatch", "sample"}),
                      kResult,
                      "Rates are of a minibatch's mean gradient, or per sample: times the "
                      "samples of the step, as CNTK's learningRatesPerSample"));
  rows->push_back(Row("schedule.unit", KUMO_FIELD(schedule.unit), "", OneOf({"epoch", "sample"}),
                      kResult, "What the positions of this section count"));
  rows->push_back(Row("schedule.step", KUMO_FIELD(schedule.step), "schedule.unit", Above(0),
                      kResult, "Length of a stage (step)"));
  rows->push_back(Row("schedule.milestones", KUMO_FIELD(schedule.milestones), "schedule.unit",
                      Above(0), kResult,
                      "Positions at which the rate is multiplied by gamma (multistep), or the "
                      "next stage begins; ascending, separated by commas"));
  rows->push_back(Row("schedule.rates", KUMO_FIELD(schedule.rates), "", AboveTo(0, 1000), kResult,
                      "The rate of each stage, one more than milestones (stages)"));
  rows->push_back(Row("schedule.time_constants", KUMO_FIELD(schedule.time_constants), "samples",
                      AtLeast(0), kResult,
                      "Momentum is exp(-samples of the step / this), as CNTK's "
                      "momentumAsTimeConstant: one value for each stage, one more than "
                      "milestones; 0: none; empty: optimiser.momentum"));
  rows->push_back(Row("schedule.gamma", KUMO_FIELD(schedule.gamma), "", AboveTo(0, 1), kResult,
                      "Factor per stage (step, multistep)"));
  rows->push_back(Row("schedule.power", KUMO_FIELD(schedule.power), "", AboveTo(0, 100), kResult,
                      "rate * (1 - position/end)^power (poly)"));
  rows->push_back(Row("schedule.final_rate", KUMO_FIELD(schedule.final_rate), "", Between(0, 1000),
                      kResult, "The rate at the end (poly, cosine)"));
  rows->push_back(Row("schedule.warmup", KUMO_FIELD(schedule.warmup), "schedule.unit", AtLeast(0),
                      kResult, "Rise linearly from 0 to the base rate over so long"));
}

void AddEvaluationAndCheckpoint(std::vector<Option>* rows) {
  rows->push_back(Row("evaluation.every_epochs", KUMO_FIELD(evaluation.every_epochs), "epochs",
                      Between(0, 1000000), kResult, "0: only after the last epoch"));
  rows->push_back(Row("evaluation.minibatch", KUMO_FIELD(evaluation.minibatch), "samples",
                      Between(1, 1000000), kResult, "Samples evaluated at a time"));
  rows->push_back(Row("checkpoint.every_rounds", KUMO_FIELD(checkpoint.every_rounds), "rounds",
                      Between(0, kAnyCount), !kResult, "0: not by rounds"));
  rows->push_back(Row(
      "checkpoint.every_epochs", KUMO_FIELD(checkpoint.every_epochs), "epochs", Between(0, 1000000),
      !kResult, "A checkpoint with the last round of every so many epochs; 0: not by epochs"));
  rows->push_back(Row("checkpoint.every_minutes", KUMO_FIELD(checkpoint.every_minutes), "minutes",
                      Between(0, 1e6), !kResult, "0: not by time"));
  rows->push_back(Row("checkpoint.keep", KUMO_FIELD(checkpoint.keep), "checkpoints",
                      Between(1, 1000), !kResult, "Newest checkpoints that are kept"));
  rows->push_back(Row(
      "checkpoint.best", KUMO_FIELD(checkpoint.best), "",
      {.characters = "_", .text = "none or a metric of the network: accuracy, loss, ..."}, !kResult,
      "Save each epoch that is evaluated, and keep the one whose validation figure of this "
      "metric is the best beside the newest; none: do not"));
  rows->push_back(Row("checkpoint.resume", KUMO_FIELD(checkpoint.resume), "",
                      Saying("auto, never, must or a round number"), !kResult,
                      "auto: go on from the latest checkpoint where there is one; must: fail "
                      "where there is none; a number: from the checkpoint of that round; never: "
                      "start anew, what there is goes to checkpoints.old"));
  rows->push_back(Row("checkpoint.continue", KUMO_FIELD(checkpoint.continues), "", Any(), !kResult,
                      "Go on from a checkpoint of the same network and data also where other "
                      "settings have changed, from there on; `kumo launch --continue` sets it"));
  rows->push_back(Row("checkpoint.grace_s", KUMO_FIELD(checkpoint.grace_s), "seconds",
                      Between(kLeastTime, 86400), !kResult,
                      "Limit of saving and leaving after SIGTERM"));
  rows->push_back(Row("checkpoint.disks", KUMO_FIELD(checkpoint.disks), "",
                      OneOf({"shared", "private"}), !kResult,
                      "shared: one output.directory for all servers; private: each server has a "
                      "disk of its own, and the servers hand each other what it lacks"));
}

void AddOutput(std::vector<Option>* rows) {
  rows->push_back(WithPath(
      WithDefault(Row("output.directory", KUMO_FIELD(output.directory), "", Any(), !kResult,
                      "Where checkpoints, curves and logs go, relative to the working directory"),
                  "out/<job.name>"),
      PathBase::kWorkingDirectory));
  rows->push_back(WithPath(
      WithDefault(
          Row("output.final_model", KUMO_FIELD(output.final_model), "", Any(), !kResult,
              "Folder, of this job alone, where server 0 puts a copy of the last checkpoint "
              "when the job is done, relative to the working directory"),
          "none"),
      PathBase::kWorkingDirectory));
  rows->push_back(Row("output.interval_s", KUMO_FIELD(output.interval_s), "seconds",
                      Between(kLeastTime, 86400), !kResult, "Time between two progress lines"));
  rows->push_back(Row("output.points_per_epoch", KUMO_FIELD(output.points_per_epoch), "points",
                      Between(1, 1000000), !kResult,
                      "Points of the curves in an epoch, at the same samples in every run; a "
                      "round has one at most, an epoch's end always has one"));
  rows->push_back(Row("output.tensorboard", KUMO_FIELD(output.tensorboard), "", Any(), !kResult,
                      "Write TensorBoard event files"));
  rows->push_back(Row("output.jsonl", KUMO_FIELD(output.jsonl), "", Any(), !kResult,
                      "Write the curves as JSON lines"));
}

void AddCluster(std::vector<Option>* rows) {
  rows->push_back(
      WithDefault(Row("cluster.servers", KUMO_FIELD(cluster.servers), "",
                      Saying("tcp://host:port or ipc://path, separated by commas, at most 64"),
                      !kResult, "One address per server; server 0 is also the coordinator"),
                  "`kumo launch` picks free loopback ports"));
  rows->push_back(Row("cluster.workers", KUMO_FIELD(cluster.workers), "workers", Between(1, 4096),
                      !kResult, "The job waits for so many workers at its start"));
  rows->push_back(Row("cluster.min_workers", KUMO_FIELD(cluster.min_workers), "workers",
                      Between(1, 4096), !kResult, "The job waits while there are fewer"));
  rows->push_back(Row("cluster.join_timeout_s", KUMO_FIELD(cluster.join_timeout_s), "seconds",
                      Between(kLeastTime, 86400), !kResult,
                      "Limit of waiting for servers and workers at the start"));
  rows->push_back(Row("cluster.suspect_after_s", KUMO_FIELD(cluster.suspect_after_s), "seconds",
                      Between(kLeastTime, 86400), !kResult,
                      "A process that is silent for so long counts as lost"));
  rows->push_back(Row("cluster.stall_timeout_s", KUMO_FIELD(cluster.stall_timeout_s), "seconds",
                      Between(kLeastTime, 604800), !kResult,
                      "The job ends when no round closes for so long, which a block must not "
                      "take; and how long a process waits for a server that is gone"));
  rows->push_back(Row("cluster.recovery", KUMO_FIELD(cluster.recovery), "",
                      OneOf({"continue", "exact"}), !kResult,
                      "When a worker dies with what its partitions carried (residuals, kept "
                      "optimiser state): go on without it, or go back to the last checkpoint, "
                      "which gives the bits of an undisturbed run"));
  rows->push_back(Row("cluster.replicas", KUMO_FIELD(cluster.replicas), "servers", Between(1, 2),
                      !kResult,
                      "How many servers keep each version of the weights in memory: with 2 the "
                      "death of one server loses no round, and each version travels once more"));
  rows->push_back(Row("cluster.heartbeat_s", KUMO_FIELD(cluster.heartbeat_s), "seconds",
                      Between(kLeastTime, 3600), !kResult, "Time between two signs of life"));
  rows->push_back(Row("cluster.server_threads", KUMO_FIELD(cluster.server_threads), "threads",
                      Between(1, 1024), !kResult, "Arithmetic threads of one server"));
  rows->push_back(WithPath(
      WithDefault(
          Row("cluster.keys", KUMO_FIELD(cluster.keys), "", Any(), !kResult,
              "The folder of keys that `kumo keys` made, relative to the working directory: "
              "every tcp connection is encrypted, and made only between those it names"),
          "none"),
      PathBase::kWorkingDirectory));
  rows->push_back(
      Row("cluster.insecure", KUMO_FIELD(cluster.insecure), "", Any(), !kResult,
          "Without keys: serve other addresses than loopback and ipc, unencrypted and to "
          "anybody who can reach them"));
  rows->push_back(Row("cluster.chunk_kib", KUMO_FIELD(cluster.chunk_kib), "KiB of float32",
                      Between(2, 65536), !kResult,
                      "Unit of transfer and arithmetic; the same in every process of a job"));
}

void AddHttp(std::vector<Option>* rows) {
  rows->push_back(WithDefault(
      Row("http.address", KUMO_FIELD(http.address), "",
          Saying("host:port, *:port for every interface, port 0 for any free one"), !kResult,
          "Where server 0 shows the job, to whoever can connect: its page, and metrics "
          "for Prometheus"),
      "`kumo launch` picks a free loopback port"));
}

#undef KUMO_FIELD

}  // namespace

OptionTable::OptionTable() {
  AddJob(&options_);
  AddNetwork(&options_);
  AddData(&options_);
  AddSync(&options_);
  AddBlock(&options_);
  AddOptimiser(&options_);
  AddSchedule(&options_);
  AddEvaluationAndCheckpoint(&options_);
  AddOutput(&options_);
  AddCluster(&options_);
  AddHttp(&options_);
  for (Option& option : options_) {
    option.also = WordsFor(option.key);
    keys_.push_back(option.key);
    if (sections_.empty() || sections_.back() != option.section()) {
      sections_.push_back(option.section());
    }
  }
}

const Option* OptionTable::Find(std::string_view key) const {
  const auto it = std::find(keys_.begin(), keys_.end(), key);
  return it == keys_.end() ? nullptr : &options_[it - keys_.begin()];
}

std::string_view OptionTable::SectionHelp(std::string_view section) {
  static constexpr std::pair<std::string_view, std::string_view> kHelp[] = {
      {"job", "The job as a whole."},
      {"network", "What is trained, and on which device."},
      {"data", "What it is trained and evaluated on."},
      {"sync", "How the partitions work together."},
      {"block", "The update rule of block mode."},
      {"optimiser", "The optimiser of minibatches."},
      {"schedule", "The learning rate."},
      {"evaluation", "Validation during the training."},
      {"checkpoint", "What is saved, when, and where a run starts."},
      {"output", "What a person sees and finds afterwards."},
      {"cluster", "The processes of this run."},
      {"http", "The page and the metrics of this run."},
  };
  for (const auto& [name, help] : kHelp) {
    if (name == section) return help;
  }
  return "";
}

}  // namespace kumo
