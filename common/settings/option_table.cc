#include "common/settings/option_table.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

namespace kumo {
namespace {

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
Status Read(std::string_view text, const Allowed& allowed, void* value) {
  return ReadValue(text, allowed, static_cast<Value*>(value));
}
template <typename Value>
std::string Write(const void* value) {
  return WriteValue(*static_cast<const Value*>(value));
}
template <typename Value>
std::vector<std::pair<std::string_view, std::string_view>> Words() {
  std::vector<std::pair<std::string_view, std::string_view>> words;
  if constexpr (HasChoices<Value>) {
    for (const Choice<Value>& choice : ChoicesOf(Value())) {
      words.emplace_back(choice.word, choice.help);
    }
  }
  return words;
}

// One for each type of value, so that a row costs the compiler an address.
template <typename Value>
constexpr ValueType kTypeOf = {TypeOf<Value>(), Read<Value>, Write<Value>, Words<Value>};

// clang-format takes the + for a sum.
// clang-format off
#define KUMO_FIELD(path)                                                       \
  .field = {+[](Experiment& e) -> void* { return &e.path; },                   \
            &kTypeOf<std::remove_cvref_t<decltype(std::declval<Experiment&>().path)>>}
// clang-format on
// A setting whose key is the name of its field.
#define KUMO_SETTING(path) .key = #path, KUMO_FIELD(path)

constexpr double kAnyCount = 1e15;  // samples, rounds: a double still holds it exactly
// Seconds. A shorter time is none between two events, and no limit of one.
constexpr double kLeastTime = 0.01;

Allowed Between(double min, double max) { return {.min = min, .max = max}; }
Allowed AtLeast(double min) { return {.min = min}; }
Allowed Above(double min) { return {.min = min, .min_excluded = true}; }
Allowed AboveTo(double min, double max) { return {.min = min, .max = max, .min_excluded = true}; }
Allowed ToBelow(double min, double max) { return {.min = min, .max = max, .max_excluded = true}; }
Allowed Saying(const char* text) { return {.text = text}; }
// Names of streams in CNTK's text format.
Allowed StreamName() { return {.characters = "-_.", .text = "letters, digits, '-', '_' and '.'"}; }

Allowed Devices() {
  Allowed devices;
  devices.values = {Device().ToString(), Device{Device::Kind::kCuda}.ToString()};
  for (int i = 0; i < 16; ++i) devices.values.push_back(Device{Device::Kind::kCuda, i}.ToString());
  devices.text = "cpu, cuda, or cuda:0 .. cuda:15";
  return devices;
}

// The codecs for which `may` holds. Others are refused where the setting is read, so that codecs
// are made of what a checkpoint's settings say without further checks.
Allowed CodecsThat(bool (*may)(const CodecTraits&)) {
  Allowed codecs;
  for (const Codec* codec : AllCodecs()) {
    if (may(codec->traits())) codecs.values.emplace_back(codec->name());
  }
  return codecs;
}

struct Section {
  std::string_view name;
  std::string_view help;
  std::string_view also;                     // other words for it, separated by blanks
  std::span<const NoEffect> no_effect = {};  // conditions for all its settings
};
constexpr NoEffect kOnData[] = {NoEffect::kProgramDecides};
constexpr NoEffect kOnBlock[] = {NoEffect::kOutsideBlocks};
constexpr NoEffect kOnBlockSchedule[] = {NoEffect::kOutsideBlocks, NoEffect::kRuleWithoutRate};
constexpr Section kSections[] = {
    {"job", "The job as a whole.", "general training train run experiment main"},
    {"network", "The network and its device.", "model net"},
    {"data", "Data files, and the transforms of samples.", "dataset datasets input loader",
     kOnData},
    {"sync", "Synchronisation of the partitions.",
     "synchronization synchronisation communication distributed parallel"},
    {"block", "The update rule of block mode.", "bmuf block_momentum aggregation", kOnBlock},
    {"block_schedule", "The schedule of the block learning rate.",
     "outer_schedule outer_lr_scheduler block_lr_schedule", kOnBlockSchedule},
    {"optimiser", "The optimiser of minibatches.", "optimizer optim solver sgd adam"},
    {"schedule", "The learning-rate schedule.",
     "scheduler lr learning_rate lr_schedule lr_scheduler"},
    {"evaluation", "Validation during training.", "eval validation val test"},
    {"checkpoint", "When checkpoints are written, and from which one a run starts.",
     "save saving snapshot"},
    {"output", "Progress lines, curves, and the folder of a run's results.",
     "out log logs logging results"},
    {"worker", "The program of the workers.", "script program entrypoint"},
    {"cluster", "Servers and workers of this run.", "servers workers processes nodes launch"},
    {"http", "The status page and the metrics of this run.",
     "web page metrics prometheus monitoring dashboard"},
};

const Section* FindSection(std::string_view name) {
  const auto found = std::ranges::find(kSections, name, &Section::name);
  return found == std::end(kSections) ? nullptr : found;
}

using enum Effect;
using enum NoEffect;

std::vector<Option> Rows() {
  return {
      {KUMO_SETTING(job.name),
       .allowed = {.characters = "-_", .text = "letters, digits, '-' and '_'"}, .effect = kStart,
       .scope = Scope::kJob, .default_text = "the file's name without .conf",
       .also = "experiment_name run_name title",
       .help = "Name of the job in logs, checkpoints and messages between processes"},
      {KUMO_SETTING(job.seed), .allowed = Between(0, 9007199254740991.0), .effect = kOrder,
       .also = "random_seed rng_seed manual_seed",
       .help = "Seed of all random streams: initial weights, shuffling, crops, dropout"},
      {KUMO_SETTING(job.epochs), .unit = "epochs", .allowed = Between(1, 1000000),
       .effect = kResult, .also = "epoch num_epochs max_epochs n_epochs nb_epoch num_train_epochs",
       .help = "Passes over the training set"},
      {KUMO_SETTING(job.fail_if_diverged), .also = "terminate_on_nan detect_anomaly check_finite",
       .help =
           "Exit code 78 for a job that ends with a loss that has grown or an accuracy of chance; "
           "false: only a warning. A loss or weight that is not finite ends the job in any case"},
      {KUMO_SETTING(job.patience), .unit = "epochs", .allowed = Between(0, 1000000),
       .no_effect = {kPatienceWithoutEvaluations},
       .also = "early_stopping stop_patience early_stopping_patience early_stop",
       .help = "Early stopping: evaluated epochs without a better validation figure after which "
               "the job "
               "ends; 0: it trains job.epochs"},
      {KUMO_SETTING(job.patience_metric),
       .allowed = {.characters = "_", .text = "a metric of the network: accuracy, loss, ..."},
       .no_effect = {kWithoutPatience}, .also = "monitor early_stopping_metric stop_metric",
       .help = "Metric of early stopping (job.patience)"},
      {KUMO_SETTING(job.min_improvement), .allowed = Between(0, 1e9),
       .no_effect = {kWithoutPatience}, .also = "min_delta threshold tolerance",
       .help = "Early stopping: a validation figure counts as better if it is better by more than "
               "this"},

      {KUMO_SETTING(network.file), .effect = kResult, .no_effect = {kProgramDecides},
       .base = PathBase::kExperimentFile, .path = PathKind::kBaseName, .default_text = "required",
       .also = "model net network architecture arch model_file",
       .help = "Network file (text protobuf); a relative path is relative to the experiment file, "
               "on the command line to the working directory"},
      {KUMO_SETTING(network.device), .allowed = Devices(), .no_effect = {kProgramDecides},
       .also = "devices gpu gpus use_gpu use_cuda cuda accelerator",
       .help = "Device of the workers: the CPU, or the GPU of that number; cuda: the first GPU"},
      {KUMO_SETTING(network.precision), .effect = kResult, .no_effect = {kProgramDecides},
       .also = "dtype amp fp16 bf16 mixed_precision half",
       .help =
           "Element type of activations and of the operands of products; bf16 and fp16 need a GPU. "
           "Weights, optimiser state and sums stay float32; fp16 scales the loss automatically"},
      {KUMO_SETTING(network.threads), .unit = "threads", .allowed = Between(1, 1024),
       .effect = kResult, .also = "num_threads n_threads nthreads omp_num_threads",
       .help = "Arithmetic threads of a worker; the last bits of sums depend on it"},
      {KUMO_SETTING(network.instruction_set), .no_effect = {kProgramDecides},
       .also = "isa cpu_isa avx512 max_cpu_isa",
       .help = "Instruction-set level of workers on CPUs. Workers of one level compute the same "
               "bits; on mixed machines, set the level that all have"},
      {KUMO_SETTING(network.tf32), .effect = kResult, .no_effect = {kProgramDecides},
       .also = "allow_tf32",
       .help = "TF32 products on a GPU: operands are rounded to 10 mantissa bits instead of 23, "
               "which is faster"},
      {KUMO_SETTING(network.deterministic), .no_effect = {kProgramDecides},
       .also = "cudnn_deterministic",
       .help = "Deterministic algorithms on a GPU: each run on the same kind of GPU gives the same "
               "bits"},
      {KUMO_SETTING(network.initial_weights), .effect = kStart, .base = PathBase::kExperimentFile,
       .path = PathKind::kBaseName,
       .also = "weights init_weights pretrained init_from load finetune warm_start",
       .help = "Initial weights: a checkpoint's folder, a job's output folder (its newest "
               "checkpoint) or a file of tensors (.safetensors, .npz). Tensors of the same name "
               "and shape start with these values, others at random; a relative path is relative "
               "as for network.file; empty: all start at random"},
      {KUMO_SETTING(network.initial_names), .effect = kStart, .base = PathBase::kExperimentFile,
       .path = PathKind::kBaseName, .also = "weight_map name_map rename key_mapping",
       .help = "Text file that maps the tensor names of network.initial_weights to the network's, "
               "a line each: `their name = our name`; a relative path is relative as for "
               "network.file; a word such as torchvision: the file NETWORK.torchvision.names "
               "beside network.file; empty: names are equal"},
      {KUMO_SETTING(network.initial_partial),
       .also = "partial strict allow_partial ignore_mismatch",
       .help = "Permission to start with fewer than half of the network's tensors from "
               "network.initial_weights"},

      {KUMO_SETTING(data.reader), .effect = kFiles, .also = "format data_format",
       .help = "Reader of the data files"},
      {KUMO_SETTING(data.directory), .base = PathBase::kWorkingDirectory,
       .default_text = "$KUMO_DATA", .also = "data dataset data_dir data_root root data_path path",
       .help = "Folder of relative data files, relative to the working directory"},
      {KUMO_SETTING(data.cache), .base = PathBase::kWorkingDirectory, .scope = Scope::kMachine,
       .default_text = "$XDG_CACHE_HOME/kumo, else ~/.cache/kumo",
       .also = "cache_dir cache_directory scratch",
       .help = "Cache folder on this machine for unpacked data files and decoded images, shared by "
               "all processes; if it cannot be written, each process keeps its own copy in memory"},
      {KUMO_SETTING(data.train_images), .effect = kFiles, .no_effect = {kWithText},
       .base = PathBase::kDataDirectory, .path = PathKind::kBaseNameIfAbsolute,
       .also = "images train train_data training_images",
       .help = "Training samples: a file (optionally .gz) or a folder, which may lie inside an "
               "archive (.tar, .tar.gz, .zip): photos.tar.gz/train; for reader voc PATH:SET, "
               "joined by commas: VOC2007:trainval,VOC2012:trainval (without :SET: trainval, but "
               "test for data.validation_images); for reader table the CSV file"},
      {KUMO_SETTING(data.train_labels), .effect = kFiles,
       .no_effect = {kLabelsWithSamples, kWithText}, .base = PathBase::kDataDirectory,
       .path = PathKind::kBaseNameIfAbsolute, .also = "labels training_labels targets",
       .help =
           "Training labels, if they are in a file of their own (reader idx; coco: the JSON of the "
           "objects, which may lie inside an archive; masks: the folder of the masks)"},
      {KUMO_SETTING(data.validation_images), .effect = kFiles, .no_effect = {kWithText},
       .base = PathBase::kDataDirectory, .path = PathKind::kBaseNameIfAbsolute,
       .also = "val_images test_images valid_images eval_images test_data",
       .help = "Validation samples, as data.train_images; empty: data.validation_share of the "
               "training samples"},
      {KUMO_SETTING(data.validation_labels), .effect = kFiles,
       .no_effect = {kLabelsWithSamples, kWithText, kWithoutLabelFiles},
       .base = PathBase::kDataDirectory, .path = PathKind::kBaseNameIfAbsolute,
       .also = "val_labels test_labels valid_labels eval_labels",
       .help = "Validation labels, as data.train_labels"},
      {KUMO_SETTING(data.text), .effect = kFiles, .no_effect = {kWithoutText},
       .base = PathBase::kDataDirectory, .path = PathKind::kBaseNameIfAbsolute,
       .also = "corpus input_file text_file dataset_text",
       .help = "Text file (optionally .gz) of both sets (reader text)"},
      {KUMO_SETTING(data.tokens), .effect = kInput, .no_effect = {kWithoutText},
       .also = "tokenizer tokeniser encoding vocabulary vocab", .help = "Tokens of a text"},
      {KUMO_SETTING(data.window), .unit = "tokens", .allowed = Between(1, 1 << 20), .effect = kData,
       .no_effect = {kWithoutText},
       .also = "block_size context context_length seq_len sequence_length bptt",
       .help = "Sequence length of a text's samples"},
      {KUMO_SETTING(data.windows), .unit = "samples", .allowed = Between(0, kAnyCount),
       .effect = kData, .no_effect = {kWithoutText}, .also = "samples_per_epoch epoch_size",
       .help = "Samples of an epoch of a text, at random places that change with each epoch; 0: as "
               "many as the text has without overlap"},
      {KUMO_SETTING(data.validation_share), .allowed = Between(0.0001, 0.9999), .effect = kData,
       .no_effect = {kWithValidationFiles},
       .also = "val_split validation_split val_fraction test_size",
       .help = "Share of the samples that form the validation set: the end of a text, or samples "
               "spread over the training set of other data. If this is set, data.validation_images "
               "is empty by default"},
      {KUMO_SETTING(data.image_size), .effect = kData, .no_effect = {kWithText, kImagesKeepSize},
       .also = "size image_shape input_size width height channels",
       .help =
           "Channels x height x width of all images, such as 3x224x224, to which they are scaled "
           "(data.resize); empty: images keep their size, which must be the same for all"},
      {KUMO_SETTING(data.resize), .effect = kData, .no_effect = {kWithText, kWithoutImageSize},
       .also = "stretch keep_aspect_ratio letterbox squash warp resize_mode",
       .help = "Part of an image that is scaled to data.image_size; if samples have boxes, always "
               "the whole image"},
      {KUMO_SETTING(data.damaged), .effect = kFiles, .no_effect = {kWithoutImageFiles},
       .also = "skip_damaged corrupt broken on_error errors",
       .help = "Treatment of images that cannot be decoded"},
      {KUMO_SETTING(data.decode), .no_effect = {kWithoutImageFiles, kWithImagesOnDemand},
       .also = "lazy on_demand in_memory preload cache_images load_images",
       .help = "Time at which images are decoded"},
      {KUMO_SETTING(data.ctf_features), .allowed = StreamName(), .effect = kData,
       .no_effect = {kWithoutStreams}, .also = "features feature_stream features_dim",
       .help = "Name of the input stream (reader ctf)"},
      {KUMO_SETTING(data.ctf_labels), .allowed = StreamName(), .effect = kData,
       .no_effect = {kWithoutStreams}, .also = "label_stream",
       .help = "Name of the label stream: class numbers, or one-hot vectors (reader ctf)"},
      {KUMO_SETTING(data.scale), .allowed = Above(0), .effect = kPixels,
       .no_effect = {kWithText, kWithNumbers}, .also = "rescale normalize normalise pixel_scale",
       .help = "Factor of all pixels; the default is 1/255"},
      {KUMO_SETTING(data.subtract_mean), .effect = kPixels,
       .also = "mean_subtraction mean_image center",
       .help = "Subtraction of the training set's mean image (of the first data.train_limit "
               "samples) from every image, before data.scale"},
      {KUMO_SETTING(data.mean), .allowed = Between(-1e6, 1e6), .effect = kPixels,
       .no_effect = {kWithText},
       .also = "normalize_mean channel_mean mean_rgb mean_values pixel_mean",
       .help = "Mean of each channel, which is subtracted after data.scale: 0.4914,0.4822,0.4465 "
               "for CIFAR-10; empty: nothing is subtracted"},
      {.key = "data.std",
       KUMO_FIELD(data.std_dev),
       .allowed = AboveTo(0, 1e6),
       .effect = kPixels,
       .no_effect = {kWithText},
       .old_key = "data.deviation",
       .also = "stddev standard_deviation normalize_std std_rgb std_values pixel_std",
       .help = "Standard deviation of each channel, by which it is divided after data.scale and "
               "data.mean: 0.247,0.243,0.261 for CIFAR-10; empty: no division"},
      {KUMO_SETTING(data.train_difficult), .effect = kResult, .no_effect = {kWithoutObjects},
       .also = "use_difficult use_difficult_gt keep_difficult iscrowd crowd",
       .help =
           "Training on difficult objects, and on crowds of COCO; without it they are background "
           "in training. Evaluation leaves them out in any case"},
      {KUMO_SETTING(data.photometric), .effect = kResult, .no_effect = {kWithText},
       .also = "photometric_distort random_distort color_distort colour_distort",
       .help = "Photometric distortion of training images, as published for SSD: brightness by up "
               "to 32 levels, contrast and saturation by a factor of 0.5 .. 1.5, hue by up to a "
               "tenth of the circle, each with probability 1/2"},
      {KUMO_SETTING(data.expand), .allowed = Between(1, 16), .effect = kResult,
       .no_effect = {kWithText}, .also = "zoom_out random_expand random_zoom_out expand_ratio",
       .help = "Largest ratio r of the random expansion of training images, 4 for SSD: with "
               "probability 1/2 an image is placed at random on a canvas 1 .. r times as high and "
               "wide, of the colour data.mean or grey (128); 1: no expansion"},
      {KUMO_SETTING(data.object_crop), .effect = kResult, .no_effect = {kWithText},
       .also = "iou_crop random_iou_crop min_iou_random_crop ssd_crop bbox_crop",
       .help = "Random part of training images with boxes, as published for SSD: the whole image, "
               "any part, or a part that overlaps with all objects by 0.1, 0.3, 0.5, 0.7 or 0.9 "
               "(intersection over union); objects whose centre lies outside are dropped"},
      {KUMO_SETTING(data.random_interpolation), .effect = kResult,
       .no_effect = {kWithText, kWithoutImageSize},
       .also = "interpolation random_resize resampling",
       .help = "Random interpolation of training images that are scaled to data.image_size: "
               "nearest, linear, area, cubic or Lanczos; without it, linear"},
      {KUMO_SETTING(data.crop_area), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kWithText},
       .also = "random_resized_crop crop_scale min_area crop_ratio area_ratio",
       .help = "Area range of random crops of training images, as shares of the image (0.08,1); "
               "crops are scaled to data.image_size or the image's own size; empty: no crops"},
      {KUMO_SETTING(data.crop_aspect), .allowed = Between(0.01, 100), .effect = kResult,
       .no_effect = {kWithText, kWithoutCropArea}, .also = "aspect_ratio aspect ratio",
       .help = "Aspect-ratio range (width / height) of the random crops"},
      {KUMO_SETTING(data.shorter_side), .unit = "pixels", .allowed = Between(0, 8192),
       .effect = kData, .no_effect = {kWithText},
       .also = "centre_crop center_crop resize_shorter val_resize crop_pct resize_short",
       .help = "Shorter side to which validation images are scaled before their centre is cropped "
               "to data.image_size or their own size, for example 256 for images of 224x224; 0: no "
               "scaling"},
      {KUMO_SETTING(data.crop_pad), .unit = "pixels", .allowed = Between(0, 1024),
       .effect = kResult, .no_effect = {kWithText},
       .also = "crop random_crop pad padding rand_crop",
       .help =
           "Padding on every side of a training image; a random window of the image's own size is "
           "cropped from the padded image; 0: no crop"},
      {KUMO_SETTING(data.pad_value), .allowed = Between(0, 255), .effect = kResult,
       .no_effect = {kWithText, kWithoutCropPad}, .also = "fill fill_value",
       .help = "Value of the pixels that data.crop_pad adds"},
      {KUMO_SETTING(data.flip), .effect = kResult, .no_effect = {kWithText},
       .also = "hflip random_flip mirror rand_mirror horizontal_flip",
       .help = "Random horizontal flip of training images, with probability 1/2 in each epoch"},
      {KUMO_SETTING(data.brightness), .allowed = Between(0, 4), .effect = kResult,
       .no_effect = {kWithText}, .also = "color_jitter colour_jitter jitter",
       .help = "Brightness jitter x of training images: a random factor 1 - x .. 1 + x, by "
               "torchvision's formula; the four colour jitters are applied in a random order"},
      {KUMO_SETTING(data.contrast), .allowed = Between(0, 4), .effect = kResult,
       .no_effect = {kWithText}, .also = "color_jitter colour_jitter jitter",
       .help = "Contrast jitter x: a random factor 1 - x .. 1 + x of the distance from the image's "
               "mean grey"},
      {KUMO_SETTING(data.saturation), .allowed = Between(0, 4), .effect = kResult,
       .no_effect = {kWithText}, .also = "color_jitter colour_jitter jitter",
       .help = "Saturation jitter x: a random factor 1 - x .. 1 + x of the distance from each "
               "pixel's grey; no effect on grey images"},
      {KUMO_SETTING(data.hue), .allowed = Between(0, 0.5), .effect = kResult,
       .no_effect = {kWithText}, .also = "color_jitter colour_jitter jitter",
       .help = "Hue jitter x: a random rotation of -x .. x of the hue circle"},
      {KUMO_SETTING(data.cutout), .unit = "pixels", .allowed = Between(0, 8192), .effect = kResult,
       .no_effect = {kWithText}, .also = "random_erasing erasing cutout_size mask_size",
       .help = "Side of the square at a random place of each training image that is filled with "
               "data.mean, or with grey (128) if that is empty; 0: none"},
      {KUMO_SETTING(data.mixup), .allowed = Between(0, 2), .effect = kResult,
       .no_effect = {kWithText}, .also = "mix_up mixup_alpha",
       .help = "Alpha of mixup: each training image and its label are averaged with another's, "
               "with weights from Beta(alpha, alpha); at least 0.05, higher values mix more "
               "evenly; 0: none"},
      {KUMO_SETTING(data.classes), .unit = "classes", .allowed = Between(0, 1000000),
       .effect = kData, .no_effect = {kWithText}, .also = "num_classes n_classes",
       .help = "Number of classes, at least 2; of objects' classes at least 1 (readers voc, coco); "
               "labels "
               "are below it, and below 256 in IDX files; 0: labels are numbers "
               "(readers ctf, table)"},
      {KUMO_SETTING(data.class_list), .effect = kFiles, .no_effect = {kWithoutClassList},
       .base = PathBase::kDataDirectory, .path = PathKind::kBaseNameIfAbsolute,
       .also = "class_names label_names labels_file names names_file class_file label_map",
       .help =
           "Text file with the names of the classes, a line each, which numbers them from 0 "
           "(readers voc, coco, table, masks); objects of other classes are dropped; empty: the "
           "classes that occur in the data, in the order of their names (coco: of their ids; "
           "masks: classes have no names)"},
      {KUMO_SETTING(data.columns), .effect = kInput, .no_effect = {kWithoutColumns},
       .also = "fields column_map x_col y_col image_column label_column",
       .help =
           "Fields of the samples and their columns (reader table), joined by commas: "
           "FIELD:KIND:COLUMN, where KIND is picture, mask, class or numbers; "
           "FIELD:numbers:COLUMN+COLUMN has several numbers; NAME* stands for all columns that "
           "begin with NAME, and FIRST..LAST for the columns from one to another. Example: "
           "left:picture:first,right:picture:second,tags:numbers:tag_*; empty: the column image is "
           "a picture, mask a mask, label a class, each other column a field of one number"},
      {KUMO_SETTING(data.class_shares),
       .allowed = {.min = 0, .text = "equal, or a number of at least 0 for each class"},
       .effect = kResult,
       .also = "class_weights class_balance balanced balance oversample undersample sampler "
               "weighted_sampler weighted_random_sampler",
       .help = "Shares of the classes among the training samples of an epoch, which keeps its "
               "length; equal: all classes equally often; numbers: in these proportions; empty: "
               "each sample once in an epoch"},
      {KUMO_SETTING(data.train_limit), .unit = "samples", .allowed = Between(0, kAnyCount),
       .effect = kFiles, .also = "limit max_samples num_samples subset num_examples",
       .help = "Limit of training samples, the first of the set; 0: all"},
      {KUMO_SETTING(data.validation_limit), .unit = "samples", .allowed = Between(0, kAnyCount),
       .effect = kFiles, .also = "limit max_samples eval_limit",
       .help = "Limit of validation samples, the first of the set; 0: all"},
      {KUMO_SETTING(data.prefetch), .unit = "minibatches", .allowed = Between(1, 1024),
       .also = "prefetch_factor buffer_size read_ahead",
       .help = "Minibatches that are prepared ahead of the training thread"},
      {KUMO_SETTING(data.threads), .unit = "threads", .allowed = Between(0, 256),
       .also = "num_workers loader_threads data_workers decode_threads reader_threads",
       .help = "Threads of a worker that read, decode and transform samples; 0: one, or for data "
               "outside memory one per core, at most 8"},

      {KUMO_SETTING(sync.mode), .effect = kMode,
       .also = "sync synchronization synchronisation kvstore kv_store",
       .help = "Synchronisation mode"},
      {KUMO_SETTING(sync.partitions), .allowed = Between(1, 4096),
       .effect = kRounds | kLocalMoments, .also = "learners num_learners world_size ranks",
       .help = "Logical learners that share the samples of each round; any number of workers "
               "computes them"},
      {KUMO_SETTING(sync.minibatch), .unit = "samples", .allowed = Between(1, 1000000),
       .effect = kRounds,
       .also = "batch batch_size mini_batch_size local_batch_size train_batch_size",
       .help = "Minibatch size of one partition"},
      {KUMO_SETTING(sync.minibatch_parts), .unit = "parts", .allowed = Between(1, 1000000),
       .effect = kResult, .no_effect = {kProgramDecides},
       .also = "accumulate accumulation gradient_accumulation gradient_accumulation_steps "
               "accumulate_grad_batches iter_size micro_batches micro_batch_size grad_accum",
       .help = "Gradient accumulation: parts of a minibatch, which a worker computes one after the "
               "other before the step; activations take the memory of one part. "
               "sync.minibatch / sync.minibatch_parts samples are computed at once, and batch "
               "normalisation sees no more"},
      {KUMO_SETTING(sync.block), .unit = "minibatches", .allowed = Between(1, 1000000),
       .effect = kRounds | kStepCount, .no_effect = {kOutsideBlocks},
       .also = "block_size block_length tau local_steps sync_period sync_frequency",
       .help = "Length of a block (block mode)"},
      {KUMO_SETTING(sync.overlap), .unit = "minibatches", .allowed = Between(0, 1000000),
       .effect = kOrder, .no_effect = {kInAsync},
       .also = "delay double_buffering fragment_sync_delay async_communication overlap_comm",
       .help = "Minibatches that a partition trains during an exchange; 0: the partition waits for "
               "the exchange. Block mode: less than sync.block; these minibatches count in the "
               "weights, not in the training figures. Gradient mode: the delay of gradients in "
               "rounds, at most 8"},
      {KUMO_SETTING(sync.staleness), .unit = "rounds", .allowed = Between(0, kMostStaleness),
       .effect = kOrder, .no_effect = {kOutsideAsync},
       .also = "ssp max_staleness max_delay bounded_delay dist_async",
       .help = "Rounds by which a partition may be ahead of the slowest (async mode), within an "
               "epoch and up to a checkpoint; 0: gradient mode. Checkpoints, stops and early "
               "stopping may come as many rounds late"},
      {KUMO_SETTING(sync.staleness_correction), .effect = kResult,
       .no_effect = {kOutsideAsync, kNothingIsLate},
       .also = "staleness_aware staleness_dependent_lr",
       .help = "Division of a gradient's learning rate by its staleness (async mode): the "
               "contributions applied since the weights that it was computed from, in rounds, if "
               "that is more than one"},
      {KUMO_SETTING(sync.fragments), .allowed = Between(1, kMostFragments),
       .effect = kRounds | kOrder | kStepCount | kBlockMomentDecay, .no_effect = {kOutsideBlocks},
       .also = "num_fragments model_fragments streaming",
       .help =
           "Fragments of the weights that are exchanged in turn (block mode): one every "
           "sync.block / sync.fragments minibatches, so that each is exchanged every sync.block "
           "minibatches, and all of them at the end of an epoch. The network carries the same "
           "bytes in smaller portions"},
      {KUMO_SETTING(sync.local_share), .allowed = Between(0, 0.999), .effect = kOrder,
       .no_effect = {kOutsideBlocks}, .also = "alpha fragment_update_alpha mixing",
       .help = "Share of a partition's own weights in its weights after an exchange (block mode); "
               "0: its weights are the servers' weights"},
      {KUMO_SETTING(sync.warmup_samples), .unit = "samples", .allowed = Between(0, kAnyCount),
       .effect = kRounds, .also = "warmup warm_up",
       .help = "Warm-up of block mode: samples that are trained in gradient mode and full "
               "precision before the first block; 0: none"},
      {KUMO_SETTING(sync.push_codec), .effect = kResult,
       .also = "codec compression quantization quantisation gradient_compression",
       .help = "Codec of contributions, from workers to servers"},
      {KUMO_SETTING(sync.pull_codec),
       .allowed = CodecsThat([](const CodecTraits& traits) { return traits.codes_pulls; }),
       .effect = kResult, .no_effect = {kRelays}, .also = "codec compression",
       .help =
           "Codec of weights, from servers to workers: of the weights themselves (fp32, fp16), or "
           "of their change since the last pull"},
      {KUMO_SETTING(sync.relay), .effect = kResult, .no_effect = {kMayNotRelay},
       .also = "relayed_pulls forward_contributions",
       .help =
           "Servers relay the coded contributions of a round, and workers average them: in block "
           "mode with a sparse sync.push_codec and block.rule = average, if all partitions' "
           "contributions are fewer bytes than the weights in sync.pull_codec. Nothing is lost"},
      {KUMO_SETTING(sync.error_feedback), .effect = kResult, .no_effect = {kPushLosesNothing},
       .also = "residual residuals",
       .help = "Error feedback: the rounding error of a contribution is added to the next one"},
      {KUMO_SETTING(sync.push_threshold), .allowed = AboveTo(0, 1e30), .effect = kResult,
       .no_effect = {kPushWithoutThreshold}, .also = "threshold gradient_compression_threshold",
       .help = "Threshold of codec 2bit: a number whose magnitude reaches it is sent as the "
               "threshold, with the number's sign; smaller numbers wait in the residual"},
      {KUMO_SETTING(sync.topk_percent), .unit = "%", .allowed = AboveTo(0, 50), .effect = kResult,
       .no_effect = {kNothingSelected}, .also = "topk top_k sparsity compress_ratio density",
       .help = "Share of each 4,096 numbers that codec topk sends, the largest"},
      {KUMO_SETTING(sync.topk_values), .allowed = CodecsThat([](const CodecTraits& traits) {
                                         return !traits.selects && !traits.needs_feedback;
                                       }),
       .effect = kResult, .no_effect = {kNothingSelected}, .also = "topk_codec",
       .help = "Codec of the numbers that codec topk sends, which must all arrive"},
      {KUMO_SETTING(sync.residual_factor), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kPushKeepsResidual},
       .also = "topk2bit_beta error_feedback_decay sparseloco_beta error_decay",
       .help = "Factor of the residual in each round with codec topk2bit; values below 1 forget "
               "unsent numbers little by little; 1 forgets nothing"},

      {KUMO_SETTING(block.rule), .effect = kBlockMoments,
       .also = "update_rule aggregation outer_optimizer outer_optimiser",
       .help = "Update rule of block mode: from a round's mean block step to the next weights"},
      {KUMO_SETTING(block.convention), .effect = kResult, .no_effect = {kRuleWithoutConvention},
       .help = "Formula of block_momentum"},
      {KUMO_SETTING(block.nesterov), .effect = kResult, .no_effect = {kRuleWithoutConvention},
       .also = "use_nesterov", .help = "Nesterov's variant of block momentum"},
      {KUMO_SETTING(block.momentum), .allowed = ToBelow(0, 1), .effect = kResult,
       .no_effect = {kRuleWithoutMomentum, kMomentumByTimeConstant},
       .also = "block_momentum outer_momentum slow_momentum_factor",
       .help = "Block momentum: share of the previous block step that is repeated; eta "
               "(block_momentum, convention paper), beta (slowmo)"},
      {KUMO_SETTING(block.learning_rate), .allowed = AboveTo(0, 1000), .effect = kResult,
       .no_effect = {kRuleWithoutRate, kScheduleWithStages},
       .also = "block_lr block_learning_rate outer_lr outer_learning_rate slow_momentum_lr",
       .help = "Block learning rate, the base rate of block_schedule: zeta (block_momentum, "
               "convention paper), blockLR (convention cntk), alpha (slowmo), the rate of adamw"},
      {KUMO_SETTING(block.time_constant), .unit = "samples", .allowed = AtLeast(0),
       .effect = kResult, .no_effect = {kRuleWithoutConvention, kMomentumByShare},
       .also = "block_momentum_as_time_constant",
       .help = "Time constant of block momentum (convention cntk); 0: -B / ln(1 - 1/N), with B "
               "samples in a full block and N partitions"},
      {KUMO_SETTING(block.beta1), .allowed = ToBelow(0, 1), .effect = kBlockMomentDecay,
       .no_effect = {kRuleWithoutMoments}, .also = "outer_betas",
       .help = "Decay of the mean block step (rule adamw)"},
      {KUMO_SETTING(block.beta2), .allowed = ToBelow(0, 1), .effect = kBlockMomentDecay,
       .no_effect = {kRuleWithoutMoments}, .also = "outer_betas",
       .help = "Decay of the mean squared block step (rule adamw)"},
      {KUMO_SETTING(block.epsilon), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kRuleWithoutMoments}, .also = "outer_eps",
       .help = "Term added to the divisor (rule adamw)"},
      {KUMO_SETTING(block.weight_decay), .allowed = ToBelow(0, 1), .effect = kResult,
       .no_effect = {kRuleWithoutMoments}, .also = "outer_weight_decay",
       .help =
           "Weight decay of the block rule, of weights, not of biases; local steps have a weight "
           "decay of their own, optimiser.weight_decay (rule adamw)"},
      {KUMO_SETTING(block.reset_local_state), .effect = kLocalMoments,
       .also = "reset_sgd_momentum reset_momentum reset_optimizer",
       .help = "Reset of the local optimiser state at the start of each block"},

      {KUMO_SETTING(block_schedule.type), .effect = kResult,
       .also = "outer_lr_scheduler outer_schedule",
       .help = "Schedule of block.learning_rate. A round takes the rate of its middle"},
      {KUMO_SETTING(block_schedule.unit), .effect = kResult,
       .help = "Unit of the positions in this section"},
      {KUMO_SETTING(block_schedule.step), .unit = "block_schedule.unit", .allowed = Above(0),
       .effect = kResult, .no_effect = {kScheduleWithoutStep}, .help = "Length of a stage (step)"},
      {KUMO_SETTING(block_schedule.milestones), .unit = "block_schedule.unit", .allowed = Above(0),
       .effect = kResult, .no_effect = {kScheduleWithoutMilestones},
       .help = "Positions, ascending, at which the rate is multiplied by block_schedule.gamma "
               "(multistep) or the next stage begins (stages)"},
      {KUMO_SETTING(block_schedule.rates), .allowed = AboveTo(0, 1000), .effect = kResult,
       .no_effect = {kScheduleWithoutStages},
       .help = "Block learning rate of each stage, one more than block_schedule.milestones "
               "(stages)"},
      {KUMO_SETTING(block_schedule.gamma), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kScheduleWithoutGamma},
       .help = "Factor of the rate per stage (step, multistep)"},
      {KUMO_SETTING(block_schedule.power), .allowed = AboveTo(0, 100), .effect = kResult,
       .no_effect = {kScheduleWithoutPower},
       .help = "Exponent of the polynomial schedule: rate * (1 - position/end)^power (poly)"},
      {KUMO_SETTING(block_schedule.final_rate), .allowed = Between(0, 1000), .effect = kResult,
       .no_effect = {kScheduleWithoutFinalRate},
       .help = "Block learning rate at the end of the job (poly, cosine)"},
      {KUMO_SETTING(block_schedule.warmup), .unit = "block_schedule.unit", .allowed = AtLeast(0),
       .effect = kResult, .help = "Length of the linear rise from 0 to the base rate; 0: none"},

      {KUMO_SETTING(optimiser.type), .effect = kAnyMoments, .no_effect = {kProgramForgets},
       .also = "optimizer optimiser solver algorithm method",
       .help = "Optimiser: it steps on the servers in gradient mode, on the workers in block mode"},
      {KUMO_SETTING(optimiser.momentum), .allowed = ToBelow(0, 1), .effect = kResult,
       .no_effect = {kProgramSteps, kWithoutMomentum, kWithTimeConstants}, .also = "mom",
       .help = "Momentum (momentum, nesterov, muon; muon is usually given 0.95)"},
      {KUMO_SETTING(optimiser.unit_gain), .effect = kResult, .no_effect = {kProgramSteps},
       .also = "unit_gain_momentum useUnitGainMomentum dampening",
       .help = "Unit gain: the velocity is a mean of gradients instead of a sum, so each gradient "
               "counts 1 - momentum of itself (CNTK's default; momentum, nesterov)"},
      {KUMO_SETTING(optimiser.beta1), .allowed = ToBelow(0, 1), .effect = kMomentDecay,
       .no_effect = {kProgramSteps, kWithoutBiasCorrection}, .also = "betas adam_beta1",
       .help = "Decay of the mean gradient (adam, adamw, muon)"},
      {KUMO_SETTING(optimiser.beta2), .allowed = ToBelow(0, 1), .effect = kMomentDecay,
       .no_effect = {kProgramSteps, kWithoutBiasCorrection}, .also = "betas adam_beta2",
       .help = "Decay of the mean squared gradient (adam, adamw, muon)"},
      {KUMO_SETTING(optimiser.epsilon), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kProgramSteps, kWithoutBiasCorrection}, .also = "eps adam_epsilon",
       .help = "Term added to the divisor (adam, adamw, muon)"},
      {KUMO_SETTING(optimiser.weight_decay), .allowed = ToBelow(0, 1), .effect = kResult,
       .no_effect = {kProgramSteps}, .also = "wd l2 decay l2_penalty regularization",
       .help =
           "Weight decay (L2) of weights, not of biases; decoupled from the gradient with adamw "
           "and muon"},
      {KUMO_SETTING(optimiser.adamw_factor), .allowed = AboveTo(0, 1000), .effect = kResult,
       .no_effect = {kProgramSteps, kWithoutMatrices}, .also = "adamw_lr adam_lr muon_adam_lr",
       .help = "Learning rate of the weights that muon steps by adamw (embeddings, layers in front "
               "of a loss, biases, scales), as a factor of the schedule's (muon)"},
      {KUMO_SETTING(optimiser.clip_norm), .allowed = AtLeast(0), .effect = kResult,
       .no_effect = {kProgramSteps},
       .also = "clip clip_gradient gradient_clipping max_grad_norm grad_clip",
       .help = "Largest L2 norm of a minibatch's gradients in a partition: longer ones are scaled "
               "down to it, before the decay; 0: no clipping"},

      {KUMO_SETTING(schedule.type), .effect = kResult,
       .also = "lr_scheduler scheduler lr_policy lr_schedule policy schedule",
       .help = "Learning-rate schedule"},
      {KUMO_SETTING(schedule.learning_rate), .allowed = AboveTo(0, 1000), .effect = kResult,
       .no_effect = {kScheduleWithStages},
       .also = "lr rate base_lr initial_lr initial_learning_rate alpha",
       .help = "Base learning rate; stages has schedule.rates instead"},
      {KUMO_SETTING(schedule.per), .effect = kResult,
       .also = "rate_per lr_per learningRatesPerSample per_sample",
       .help = "Unit of the learning rates"},
      {KUMO_SETTING(schedule.unit), .effect = kResult,
       .help = "Unit of the positions in this section"},
      {KUMO_SETTING(schedule.step), .unit = "schedule.unit", .allowed = Above(0), .effect = kResult,
       .no_effect = {kScheduleWithoutStep}, .also = "step_size lr_step decay_steps",
       .help = "Length of a stage (step)"},
      {KUMO_SETTING(schedule.milestones), .unit = "schedule.unit", .allowed = Above(0),
       .effect = kResult, .no_effect = {kScheduleWithoutMilestones},
       .also = "steps lr_steps boundaries lr_step_epochs",
       .help = "Positions, ascending, at which the rate is multiplied by schedule.gamma "
               "(multistep) or the next stage begins (stages)"},
      {KUMO_SETTING(schedule.rates), .allowed = AboveTo(0, 1000), .effect = kResult,
       .no_effect = {kScheduleWithoutStages}, .also = "lrs learning_rates learningRatesPerMB",
       .help = "Learning rate of each stage, one more than schedule.milestones (stages)"},
      {KUMO_SETTING(schedule.time_constants), .unit = "samples", .allowed = AtLeast(0),
       .effect = kResult, .also = "momentumAsTimeConstant momentum_time_constant",
       .help = "Time constants of momentum, one for each stage, one more than schedule.milestones: "
               "momentum is exp(-samples of the step / time constant), as CNTK's "
               "momentumAsTimeConstant; 0: no momentum; empty: optimiser.momentum"},
      {KUMO_SETTING(schedule.gamma), .allowed = AboveTo(0, 1), .effect = kResult,
       .no_effect = {kScheduleWithoutGamma}, .also = "lr_factor factor decay_rate lr_decay",
       .help = "Factor of the rate per stage (step, multistep)"},
      {KUMO_SETTING(schedule.power), .allowed = AboveTo(0, 100), .effect = kResult,
       .no_effect = {kScheduleWithoutPower},
       .help = "Exponent of the polynomial schedule: rate * (1 - position/end)^power (poly)"},
      {KUMO_SETTING(schedule.final_rate), .allowed = Between(0, 1000), .effect = kResult,
       .no_effect = {kScheduleWithoutFinalRate}, .also = "final_lr min_lr end_lr eta_min",
       .help = "Learning rate at the end of the job (poly, cosine)"},
      {KUMO_SETTING(schedule.warmup), .unit = "schedule.unit", .allowed = AtLeast(0),
       .effect = kResult, .also = "warmup_epochs warmup_steps lr_warmup",
       .help = "Length of the linear rise from 0 to the base rate; 0: none"},

      {KUMO_SETTING(evaluation.every_epochs), .unit = "epochs", .allowed = Between(0, 1000000),
       .effect = kResult, .also = "eval_every eval_interval eval_frequency validate_every",
       .help = "Epochs between two evaluations; 0: only after the last epoch"},
      {KUMO_SETTING(evaluation.minibatch), .unit = "samples", .allowed = Between(1, 1000000),
       .effect = kResult, .also = "batch batch_size eval_batch_size test_batch_size val_batch_size",
       .help = "Minibatch size of evaluations"},
      {KUMO_SETTING(evaluation.average_samples), .unit = "samples",
       .allowed = Between(0, kAnyCount), .effect = kResult,
       .also = "ema ema_decay ema_samples moving_average averaging average_weights swa polyak "
               "model_ema weight_averaging",
       .help = "Time constant of a moving average of the weights, over the samples trained. The "
               "average is evaluated, exported and kept as best; training is the same "
               "without it. For a decay d after each round of n samples: n / (1 - d). Early in the "
               "job the constant is a tenth of the samples so far; 0: no average"},

      {KUMO_SETTING(checkpoint.every_rounds), .unit = "rounds", .allowed = Between(0, kAnyCount),
       .also = "save_every save_steps checkpoint_every save_interval period",
       .help = "Rounds between two checkpoints; 0 disables this trigger"},
      {KUMO_SETTING(checkpoint.every_epochs), .unit = "epochs", .allowed = Between(0, 1000000),
       .also = "save_every save_epochs save_freq checkpoint_every save_interval period",
       .help = "Epochs between two checkpoints, each after the last round of an epoch; 0 disables "
               "this trigger"},
      {KUMO_SETTING(checkpoint.every_minutes), .unit = "minutes", .allowed = Between(0, 1e6),
       .also = "save_every checkpoint_every save_interval period",
       .help = "Minutes between two checkpoints; 0 disables this trigger"},
      {KUMO_SETTING(checkpoint.keep), .unit = "checkpoints", .allowed = Between(1, 1000),
       .also = "max_to_keep keep_last save_total_limit save_top_k",
       .help = "Newest checkpoints that are kept; older ones are deleted"},
      {KUMO_SETTING(checkpoint.best),
       .allowed = {.characters = "_",
                   .text = "none or a metric of the network: accuracy, loss, ...",
                   .word_for_empty = "none"},
       .no_effect = {kBestWithoutEvaluations},
       .also = "save_best save_best_only monitor load_best_model_at_end metric_for_best_model",
       .help = "Metric of the best checkpoint: each evaluated epoch is saved, and the one with the "
               "best validation figure is kept beside the newest; none: no best checkpoint"},
      {KUMO_SETTING(checkpoint.resume), .allowed = Saying("auto, never, must or a round number"),
       .also = "restart restore load_checkpoint resume_from",
       .help = "Checkpoint from which the job starts; auto: the latest, if there is one; must: the "
               "latest, and an error without one; a number: the checkpoint of that round; never: "
               "none. Results that the job does not go on from stay in output.directory/earlier"},
      {.key = "checkpoint.continue",
       KUMO_FIELD(checkpoint.continues),
       .no_effect = {kNeverResumes},
       .also = "continues go_on keep_training initial_epoch",
       .help =
           "Resume although settings or the data have changed; the tensors must be the same. The "
           "changes apply from that round on. `kumo launch --continue` sets it"},
      {KUMO_SETTING(checkpoint.grace_s), .unit = "seconds", .allowed = Between(kLeastTime, 86400),
       .also = "grace timeout",
       .help = "Time limit for the last checkpoint and the exit after SIGTERM"},
      {KUMO_SETTING(checkpoint.disks), .also = "volumes shared_folder local_disk pvc nfs",
       .help = "Disks of the servers"},

      {KUMO_SETTING(output.directory), .base = PathBase::kWorkingDirectory, .scope = Scope::kJob,
       .default_text = "out/<job.name>",
       .also = "output out output_dir out_dir log_dir save_dir checkpoint_dir",
       .help = "Folder of checkpoints, curves and logs, relative to the working directory"},
      {KUMO_SETTING(output.final_model), .base = PathBase::kWorkingDirectory,
       .default_text = "none",
       .also = "model save_model model_path export_dir model_dir saved_model",
       .help = "Folder, of this job alone, to which server 0 copies the last checkpoint at the end "
               "of the job, relative to the working directory"},
      {KUMO_SETTING(output.lock), .also = "file_lock flock locking",
       .help = "Lock by which a job notices another one in output.directory"},
      {KUMO_SETTING(output.interval_s), .unit = "seconds", .allowed = Between(kLeastTime, 86400),
       .also = "interval log_interval log_every log_steps display print_every",
       .help = "Time between two progress lines"},
      {KUMO_SETTING(output.points_per_epoch), .unit = "points", .allowed = Between(1, 1000000),
       .help = "Points of the curves in an epoch, at the same samples in every run; a round has "
               "at most one, and an epoch's last round always has one"},
      {KUMO_SETTING(output.tensorboard), .also = "tb summary summaries",
       .help = "TensorBoard event files of the curves"},
      {KUMO_SETTING(output.jsonl), .also = "json", .help = "JSON Lines file of the curves"},

      {KUMO_SETTING(worker.command),
       .allowed = Saying("a program and its arguments, such as python3 train.py; a part in single "
                         "quotes is one argument"),
       .default_text = "kumo-worker", .also = "script python entrypoint main program train_script",
       .help =
           "Command of the workers of a job whose model is their own program's (docs/pytorch.md); "
           "network.file and the section data are then not needed"},

      {KUMO_SETTING(cluster.servers),
       .allowed = Saying("tcp://host:port or ipc://path, separated by commas, at most 64"),
       .default_text = "`kumo launch` picks free loopback ports",
       .also = "server hosts addresses num_servers ps parameter_servers master_addr",
       .help = "Addresses of the servers, one each; server 0 is also the coordinator"},
      {KUMO_SETTING(cluster.workers), .unit = "workers", .allowed = Between(1, 4096),
       .also = "num_workers nodes nproc nproc_per_node processes n_workers",
       .help = "Workers for which the job waits at its start"},
      {KUMO_SETTING(cluster.min_workers), .unit = "workers", .allowed = Between(1, 4096),
       .help = "Fewest workers of a running job, which waits while there are fewer"},
      {KUMO_SETTING(cluster.join_timeout_s), .unit = "seconds",
       .allowed = Between(kLeastTime, 86400), .also = "timeout join_timeout",
       .help = "Timeout of waiting for servers and workers at the start"},
      {KUMO_SETTING(cluster.suspect_after_s), .unit = "seconds",
       .allowed = Between(kLeastTime, 86400), .also = "timeout heartbeat_timeout suspect_after",
       .help = "Silence after which a process counts as lost"},
      {KUMO_SETTING(cluster.stall_timeout_s), .unit = "seconds",
       .allowed = Between(kLeastTime, 604800), .also = "timeout stall_timeout",
       .help = "Time without a closed round after which the job ends, longer than any block takes; "
               "also the time that a process waits for a lost server"},
      {KUMO_SETTING(cluster.recovery),
       .help = "Recovery after the death of a worker that held state of its partitions (residuals, "
               "local optimiser state)"},
      {KUMO_SETTING(cluster.replicas), .unit = "servers", .allowed = Between(1, 2),
       .also = "replication replication_factor",
       .help = "Servers that keep each version of the weights in memory; 2: the death of one "
               "server loses no round, and each version is sent once more"},
      {KUMO_SETTING(cluster.heartbeat_s), .unit = "seconds", .allowed = Between(kLeastTime, 3600),
       .also = "heartbeat heartbeat_interval", .help = "Time between two heartbeats"},
      {KUMO_SETTING(cluster.server_threads), .unit = "threads", .allowed = Between(1, 1024),
       .help = "Arithmetic threads of a server"},
      {KUMO_SETTING(cluster.keys), .base = PathBase::kWorkingDirectory, .scope = Scope::kMachine,
       .default_text = "none",
       .also = "key tls ssl encryption encrypt security certificate cert secret",
       .help = "Folder of keys made by `kumo keys`, relative to the working directory: tcp "
               "connections are encrypted and limited to the key holders"},
      {KUMO_SETTING(cluster.insecure), .also = "allow_insecure",
       .help = "Permission to serve without keys on addresses other than loopback and ipc: "
               "unencrypted, to anyone who can reach them"},
      {KUMO_SETTING(cluster.chunk_kib), .unit = "KiB of float32", .allowed = Between(2, 65536),
       .also = "chunk chunk_size bucket_size bucket_cap_mb",
       .help =
           "Chunk size: the unit of transfer and arithmetic; the same in every process of a job"},

      {KUMO_SETTING(http.address),
       .allowed = Saying("host:port, *:port for every interface, port 0 for any free one"),
       .scope = Scope::kMachine, .default_text = "`kumo launch` picks a free loopback port",
       .also = "page metrics dashboard web_port http_port metrics_port listen",
       .help = "Address of server 0's status page and Prometheus metrics, open to anyone who can "
               "connect"},
  };
}

#undef KUMO_SETTING
#undef KUMO_FIELD

}  // namespace

std::string Option::Help() const {
  std::string text(help);
  for (const auto& [word, meaning] : field.type->words()) {
    const bool allows = std::ranges::count(allowed.values, word) > 0;
    if (allows && !meaning.empty()) {
      text += "; " + std::string(word) + ": " + std::string(meaning);
    }
  }
  return text;
}

std::string Option::WhyNoEffect(const Experiment& experiment) const {
  for (const NoEffect condition : no_effect) {
    std::string why = kumo::WhyNoEffect(condition, section(), experiment);
    if (!why.empty()) return why;
  }
  return "";
}

OptionTable::OptionTable() : options_(Rows()) {
  for (Option& option : options_) {
    if (option.type() == OptionType::kFlag) option.allowed.text = "true or false";
    if (option.allowed.values.empty()) {
      for (const auto& [word, _] : option.field.type->words()) {
        option.allowed.values.emplace_back(word);
      }
    }
    if (const Section* section = FindSection(option.section()); section != nullptr) {
      option.no_effect.insert(option.no_effect.begin(), section->no_effect.begin(),
                              section->no_effect.end());
    }
    keys_.push_back(option.key);
    if (sections_.empty() || sections_.back() != option.section()) {
      sections_.push_back(option.section());
    }
  }
}

const OptionTable& OptionTable::Shared() {
  // A pointer, so that threads that outlive main may still read it.
  static const OptionTable& table = *new OptionTable;
  return table;
}

const Option* OptionTable::Find(std::string_view key) const {
  const auto found = std::ranges::find_if(options_, [key](const Option& option) {
    return option.key == key || (!option.old_key.empty() && option.old_key == key);
  });
  return found == options_.end() ? nullptr : &*found;
}

std::string_view OptionTable::SectionHelp(std::string_view section) {
  const Section* const found = FindSection(section);
  return found == nullptr ? "" : found->help;
}

std::string_view OptionTable::SectionAlso(std::string_view section) {
  const Section* const found = FindSection(section);
  return found == nullptr ? "" : found->also;
}

}  // namespace kumo
