// Choices of the settings: enumerations with the words of experiment files, and the devices and
// checkpoints that are named by a word or a number.
//
// The choices of other rooms are beside what they choose: CodecId (common/codec/kernel.h),
// OptimiserType (common/optimiser/kernel.h), the enumerations of schedules
// (common/optimiser/schedule.h), BlockRule (block_rules.h). Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/choice.h"
#include "common/base/status.h"

namespace kumo {

enum class SyncMode { kGradient, kBlock, kAsync };
inline constexpr Choice<SyncMode> kSyncModes[] = {
    {SyncMode::kGradient, "gradient", "after each minibatch"},
    {SyncMode::kBlock, "block", "after each block of local minibatches"},
    {SyncMode::kAsync, "async",
     "after each minibatch, each gradient applied when it arrives (sync.staleness); the weights "
     "depend on the order of arrival"},
};
constexpr std::span<const Choice<SyncMode>> ChoicesOf(SyncMode) { return kSyncModes; }
// Rounds of delay in gradient mode, at most (sync.overlap).
inline constexpr int kMostDelay = 8;
// Rounds that a partition may be ahead of another, at most (sync.staleness). Checkpoints and stops
// may be as many rounds late.
inline constexpr int kMostStaleness = 1000;
// Fragments of the weights, at most (sync.fragments).
inline constexpr int kMostFragments = 64;

// The element type of activations, their gradients, the operands of products and the gradients of
// convolution filters; everything else is float32.
enum class Precision { kFp32, kBf16, kFp16 };
inline constexpr Choice<Precision> kPrecisions[] = {
    {Precision::kFp32, "fp32"}, {Precision::kBf16, "bf16"}, {Precision::kFp16, "fp16"}};
constexpr std::span<const Choice<Precision>> ChoicesOf(Precision) { return kPrecisions; }

// Shares of the classes among the training samples of an epoch: data.class_shares.
struct ClassShares {
  bool equal = false;
  std::vector<double> of_class = {};  // proportions; empty unless they are given
  bool given() const { return equal || !of_class.empty(); }
  bool operator==(const ClassShares&) const = default;
};

// Reader of data files: data.reader.
enum class DataReader {
  kIdx,
  kImageFolder,
  kImageMap,
  kCifar,
  kCtf,
  kText,
  kVoc,
  kCoco,
  kTable,
  kMasks
};
inline constexpr Choice<DataReader> kDataReaders[] = {
    {DataReader::kIdx, "idx", "IDX images and labels as MNIST has them"},
    {DataReader::kImageFolder, "image_folder",
     "a folder or archive with JPEG and PNG images in "
     "one folder per class"},
    {DataReader::kImageMap, "image_map", "a text file of image paths and classes"},
    {DataReader::kCifar, "cifar", "the binary files of CIFAR-10 and CIFAR-100"},
    {DataReader::kCtf, "ctf", "CNTK's text format"},
    {DataReader::kText, "text", "a text, for a network that predicts the next token"},
    {DataReader::kVoc, "voc",
     "images with boxes of objects in the layout of Pascal VOC, a folder or an archive"},
    {DataReader::kCoco, "coco",
     "a folder or archive of images, with boxes of objects in COCO's JSON (instances)"},
    {DataReader::kTable, "table",
     "a CSV file with a row per sample: paths of images and masks, classes and numbers "
     "(data.columns)"},
    {DataReader::kMasks, "masks",
     "a folder or archive of images, and one of masks with the same names (PNG, the class of each "
     "pixel)"},
};
constexpr std::span<const Choice<DataReader>> ChoicesOf(DataReader) { return kDataReaders; }

// Kind of a reader's samples.
enum class SampleKind { kImages, kNumbers, kTokens };

// Traits of a reader: the settings that it reads, and the kind of its samples. Its functions are in
// data/readers/registry.cc.
struct ReaderTraits {
  SampleKind samples = SampleKind::kImages;
  bool label_files = false;    // data.train_labels and data.validation_labels name files
  bool image_files = false;    // each image is a file of its own: of any size, decoded when needed
  bool archives = false;       // paths may lead into an archive: photos.zip/train
  bool one_text = false;       // data.text names one file, cut into the windows of both sets
  bool named_streams = false;  // data.ctf_features and data.ctf_labels name streams of a file
  bool objects = false;        // samples have lists of objects
  bool class_list = false;     // data.class_list may name the classes
  bool on_demand = false;      // images are decoded at each read
  bool columns = false;        // data.columns names the fields of samples, perhaps without classes
  bool image_sets = false;  // paths name sets, joined by commas: VOC2007:trainval,VOC2012:trainval
};
constexpr ReaderTraits TraitsOf(DataReader reader) {
  switch (reader) {
    case DataReader::kIdx:
      return {.label_files = true};
    case DataReader::kImageFolder:
      return {.image_files = true, .archives = true};
    case DataReader::kImageMap:
      return {.image_files = true};
    case DataReader::kCifar:
      return {};
    case DataReader::kCtf:
      return {.samples = SampleKind::kNumbers, .named_streams = true};
    case DataReader::kText:
      return {.samples = SampleKind::kTokens, .one_text = true};
    case DataReader::kVoc:
      return {.image_files = true,
              .archives = true,
              .objects = true,
              .class_list = true,
              .on_demand = true,
              .image_sets = true};
    case DataReader::kCoco:
      return {.label_files = true,
              .image_files = true,
              .archives = true,
              .objects = true,
              .class_list = true,
              .on_demand = true};
    case DataReader::kTable:
      return {.image_files = true,
              .archives = true,
              .class_list = true,
              .on_demand = true,
              .columns = true};
    case DataReader::kMasks:
      return {.label_files = true,
              .image_files = true,
              .archives = true,
              .class_list = true,
              .on_demand = true};
  }
  return {};
}

enum class TextTokens { kCharacters, kBytes };
inline constexpr Choice<TextTokens> kTextTokens[] = {
    {TextTokens::kCharacters, "characters", "UTF-8 characters, in the order of their code points"},
    {TextTokens::kBytes, "bytes"},
};
constexpr std::span<const Choice<TextTokens>> ChoicesOf(TextTokens) { return kTextTokens; }

enum class DamagedImages { kRefuse, kSkip };
inline constexpr Choice<DamagedImages> kDamagedImages[] = {
    {DamagedImages::kRefuse, "refuse", "the job ends with an error"},
    {DamagedImages::kSkip, "skip",
     "each is replaced by the next valid image of its set, and the log names it"},
};
constexpr std::span<const Choice<DamagedImages>> ChoicesOf(DamagedImages) { return kDamagedImages; }

enum class DecodeImages : uint8_t { kAuto, kAtStart, kOnDemand };
inline constexpr Choice<DecodeImages> kDecodeImages[] = {
    {DecodeImages::kAuto, "auto",
     "demand if decoded images exceed a quarter of the memory, or if data.crop_area, data.expand, "
     "data.object_crop, data.random_interpolation or data.shorter_side need images in their own "
     "sizes; else start"},
    {DecodeImages::kAtStart, "start", "all at the start, into memory"},
    {DecodeImages::kOnDemand, "demand", "each time an image is read"},
};
constexpr std::span<const Choice<DecodeImages>> ChoicesOf(DecodeImages) { return kDecodeImages; }

// The part of an image that is scaled to data.image_size: data.resize.
enum class ResizeMode : uint8_t { kCrop, kStretch };
inline constexpr Choice<ResizeMode> kResizeModes[] = {
    {ResizeMode::kCrop, "crop", "the largest part with its aspect ratio, in the middle"},
    {ResizeMode::kStretch, "stretch", "the whole image, whose aspect ratio changes"},
};
constexpr std::span<const Choice<ResizeMode>> ChoicesOf(ResizeMode) { return kResizeModes; }

enum class CheckpointDisks { kShared, kPrivate };
inline constexpr Choice<CheckpointDisks> kCheckpointDisks[] = {
    {CheckpointDisks::kShared, "shared", "one output.directory for all servers"},
    {CheckpointDisks::kPrivate, "private",
     "each server has a disk of its own, and fetches files that it lacks from the other servers"},
};
constexpr std::span<const Choice<CheckpointDisks>> ChoicesOf(CheckpointDisks) {
  return kCheckpointDisks;
}

enum class StateLoss { kContinue, kExact };
inline constexpr Choice<StateLoss> kStateLosses[] = {
    {StateLoss::kContinue, "continue", "training continues without that state"},
    {StateLoss::kExact, "exact",
     "the job rolls back to the last checkpoint and gives the bits of an undisturbed run"},
};
constexpr std::span<const Choice<StateLoss>> ChoicesOf(StateLoss) { return kStateLosses; }

// Device of a worker's arithmetic: "cpu", "cuda" (the first GPU) or "cuda:N".
struct Device {
  enum class Kind { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  std::optional<int> number = std::nullopt;  // of a GPU; none if none was named: the first

  bool is_cpu() const { return kind == Kind::kCpu; }
  std::string ToString() const;
  bool operator==(const Device&) const = default;
};
// None for a text that names no device.
std::optional<Device> FindDevice(std::string_view text);

// Checkpoint from which a job starts: "auto", "never", "must" or a round's number.
struct ResumeFrom {
  enum class Kind { kAuto, kNever, kMust, kRound };
  Kind kind = Kind::kAuto;
  int64_t round = 0;  // kRound

  bool never() const { return kind == Kind::kNever; }
  std::string ToString() const;
  bool operator==(const ResumeFrom&) const = default;
};
// None for a text that names no checkpoint.
std::optional<ResumeFrom> FindResumeFrom(std::string_view text);

}  // namespace kumo
