// Experiment: the settings that a job's result depends on, and the layout of this run of it.
//
// Plain structs, parsed once; no file and no environment variable is read later. Every field has a
// row in the option table (option_table.cc) with its key, range, unit, help and effect; the default
// is the field's initialiser. The parser has checked all ranges: the code that uses a setting does
// not check them again.
//
// Sections that say "(result)" are part of the experiment hash: processes that differ in one of
// their settings refuse each other. The others may differ from run to run.
//
// Values, not synchronised: threads that share an Experiment only read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/instruction_set.h"
#include "common/base/process/output_lock.h"
#include "common/codec/codec.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"
#include "common/settings/block_rules.h"
#include "common/settings/choices.h"

namespace kumo {

// Servers of a job, and pixels of an image's side, at most.
inline constexpr int kMaxServers = 64;
inline constexpr int64_t kMaxImageSide = 8192;

struct Experiment {
  struct Job {         // [job] (result)
    std::string name;  // letters, digits, '-', '_'; default: the file's stem
    uint64_t seed = 1;
    int epochs = 20;
    // The rest is not part of the hash.
    bool fail_if_diverged = false;
    int patience = 0;  // epochs without a better validation figure, then the job ends; 0: no limit
    std::string patience_metric = "loss";
    double min_improvement = 0;  // of the figure, to count as better
  } job;

  struct Network {     // [network] (result)
    std::string file;  // text protobuf; a relative path is relative to the experiment file
    Device device;     // not part of the hash
    int threads = 1;   // of one worker's arithmetic
    Precision precision = Precision::kFp32;
    InstructionSet instruction_set = InstructionSet::kAuto;  // on a CPU
    bool tf32 = false;             // on a GPU: float32 products may be rounded to TF32
    bool deterministic = false;    // on a GPU: only algorithms that repeat their bits; not hashed
    std::string initial_weights;   // a checkpoint, or a file of tensors, to start from, or empty
    std::string initial_names;     // a file that maps its tensor names to ours, or empty
    bool initial_partial = false;  // also if most tensors of the network are not there
  } network;

  struct Data {  // [data] (result, but for the folders, decode, prefetch and threads)
    DataReader reader = DataReader::kIdx;
    std::string directory;  // default: $KUMO_DATA, handed in by main
    std::string cache;      // of unpacked files; "": none. Default: the user's, likewise
    std::string train_images = "mnist/train-images-idx3-ubyte.gz";
    std::string train_labels = "mnist/train-labels-idx1-ubyte.gz";
    std::string validation_images = "mnist/t10k-images-idx3-ubyte.gz";
    std::string validation_labels = "mnist/t10k-labels-idx1-ubyte.gz";
    std::string text;  // a file that is both sets
    TextTokens tokens = TextTokens::kCharacters;
    int64_t window = 64;            // tokens of a sample
    int64_t windows = 0;            // samples of an epoch; 0: as many as lie side by side
    double validation_share = 0.1;  // of a text, its last part; else see SplitsTrainingFiles
    std::string image_size;         // of all images: "3x32x32"; "": as they are in the files
    ResizeMode resize = ResizeMode::kCrop;  // to image_size
    DamagedImages damaged = DamagedImages::kRefuse;
    DecodeImages decode = DecodeImages::kAuto;
    std::string ctf_features = "features";  // streams of ctf
    std::string ctf_labels = "labels";
    double scale = 1.0 / 255.0;    // pixels are multiplied by it
    bool subtract_mean = false;    // the training set's mean image, before that
    std::vector<double> mean;      // of each channel, after scale; subtracted
    std::vector<double> std_dev;   // standard deviation of each channel, after scale; divided by
    bool train_difficult = false;  // training images keep their difficult objects
    bool photometric = false;      // SSD's changes of a training image's colours
    double expand = 1;  // largest ratio of a random canvas to its training image, of each side
    bool object_crop = false;           // SSD's random part of a training image
    bool random_interpolation = false;  // of training images that are scaled
    std::vector<double> crop_area;      // shares of a training image that are cropped; empty: all
    std::vector<double> crop_aspect = {3.0 / 4, 4.0 / 3};  // of these crops: width / height
    int shorter_side = 0;   // pixels, of images to evaluate on; 0: they are not scaled so
    int crop_pad = 0;       // pixels on every side of a training image that is cropped
    int pad_value = 0;      // of those
    bool flip = false;      // every second training image, at random
    double brightness = 0;  // of a training image's colours, at random: up to so much
    double contrast = 0;    // more or less
    double saturation = 0;
    double hue = 0;    // of the circle
    double mixup = 0;  // alpha of the weights' distribution Beta(alpha, alpha)
    int cutout = 0;    // side of the square that is painted over, in pixels
    int classes = 10;
    std::string class_list;    // a file with the names of classes; "": from the data
    std::string columns;       // of a table, by the fields that they make; "": by their names
    ClassShares class_shares;  // of an epoch; not given: each sample once
    int64_t train_limit = 0;   // samples at the front that are used; 0: all
    int64_t validation_limit = 0;
    int prefetch = 4;  // minibatches prepared ahead
    int threads = 0;   // that read and transform them; 0: by the machine

    // True if validation_share of the training samples are the validation set.
    bool SplitsTrainingFiles() const {
      return validation_images.empty() && !TraitsOf(reader).one_text;
    }
    // True if transforms take images in their own sizes and make them image_size.
    bool ScalesInTraining() const {
      return !crop_area.empty() || expand > 1 || object_crop || random_interpolation;
    }
  } data;

  struct Sync {  // [sync] (result)
    SyncMode mode = SyncMode::kBlock;
    int partitions = 2;
    int minibatch = 64;       // samples of one partition's minibatch
    int minibatch_parts = 1;  // of a minibatch, computed one after the other
    int block = 50;           // minibatches between two synchronisations, block mode
    // Minibatches trained during an exchange: of the next block, or rounds of delay (gradient
    // mode).
    int overlap = 0;
    int staleness = 4;  // rounds by which a partition may be ahead of another; async mode
    bool staleness_correction = false;  // of the learning rate, async mode
    int fragments = 1;                  // of the weights, exchanged in turn; block mode
    double local_share = 0;             // of own weights after an exchange, block mode
    int64_t warmup_samples = 0;         // full-precision gradient mode at first, block mode only
    CodecId push_codec = CodecId::kFp32;
    CodecId pull_codec = CodecId::kFp32;
    bool relay = true;  // pulls may relay contributions instead
    bool error_feedback = true;
    double push_threshold = 0.5;

    double topk_percent = 1;
    CodecId topk_values = CodecId::kInt8;
    double residual_factor = 0.95;

    // Minibatches of a partition in a round of block mode: those between two exchanges, which are
    // of different fragments.
    int RoundMinibatches() const { return mode == SyncMode::kBlock ? block / fragments : block; }
    // Whether servers step the weights in some rounds, by [optimiser]: in gradient and async mode,
    // and in the warm-up of block mode. In the other rounds partitions do.
    bool ServersStep() const { return mode != SyncMode::kBlock || warmup_samples > 0; }
    // Whether partitions go on from weights of their own when some were exchanged.
    bool KeepsOwnWeights() const {
      return mode == SyncMode::kBlock && (overlap > 0 || fragments > 1 || local_share > 0);
    }
    // Rounds by which contributions may be late (JobPlan::delay).
    int Delay() const {
      if (mode == SyncMode::kAsync) return staleness;
      return mode == SyncMode::kGradient ? overlap : 0;
    }
    // Whether servers apply each contribution when it arrives (JobPlan::on_arrival).
    bool AppliesOnArrival() const { return mode == SyncMode::kAsync && staleness > 0; }
    const Codec& PushCodec() const;
    const Codec& PullCodec() const;
    CodecSettings SettingsOfCodecs() const;
    // Chunk lengths are multiples of this many elements, so that codecs give the same bits on any
    // number of servers.
    int64_t ChunkUnit() const;
  } sync;

  BlockRuleSettings block;          // [block] (result)
  ScheduleSettings block_schedule;  // [block_schedule] (result): of block.learning_rate
  OptimiserSettings optimiser;      // [optimiser] (result)
  ScheduleSettings schedule;        // [schedule] (result)

  struct Evaluation {      // [evaluation] (result)
    int every_epochs = 1;  // 0: only after the last
    int minibatch = 256;
    double average_samples = 0;  // of the weights' moving average; 0: none
  } evaluation;

  // The schedule of the block learning rate, with its base rate.
  ScheduleSettings BlockSchedule() const {
    ScheduleSettings settings = block_schedule;
    settings.learning_rate = block.learning_rate;
    return settings;
  }

  // Whether pulls of block rounds relay the coded contributions: the next weights follow from them
  // and the last ones alone, and they are fewer bytes than sync.pull_codec would take.
  bool RelaysContributions() const;

  // job.patience in epochs; the setting counts evaluated epochs.
  int PatienceInEpochs() const {
    return job.patience * (evaluation.every_epochs > 1 ? evaluation.every_epochs : 1);
  }

  struct CheckpointOptions {    // [checkpoint]
    int64_t every_rounds = 0;   // 0: not by rounds
    int every_epochs = 0;       // 0: not by epochs
    double every_minutes = 10;  // 0: not by time
    int keep = 2;               // newest checkpoints kept
    std::string best;           // metric by which the best one is kept too; "": none
    ResumeFrom resume;
    bool continues = false;  // also from a checkpoint of other settings
    double grace_s = 25;     // limit of saving and leaving after SIGTERM
    CheckpointDisks disks = CheckpointDisks::kShared;

    bool HasPrivateDisks() const { return disks == CheckpointDisks::kPrivate; }
  } checkpoint;

  struct Output {             // [output]
    std::string directory;    // default: out/<job.name>
    std::string final_model;  // folder that gets a copy of the last checkpoint; "": none
    FileLock lock = FileLock::kKernel;
    double interval_s = 2;      // seconds between two progress lines
    int points_per_epoch = 50;  // of the curves
    bool tensorboard = true;
    bool jsonl = true;
  } output;

  struct Worker {         // [worker]
    std::string command;  // of a program that trains its own model; "": kumo-worker

    bool OwnsModel() const { return !command.empty(); }
  } worker;

  struct Cluster {                     // [cluster]
    std::vector<std::string> servers;  // one address per server: tcp://host:port or ipc://path
    int workers = 2;                   // wait for so many at the start
    int min_workers = 1;               // wait while there are fewer
    double join_timeout_s = 60;        // limit of waiting for servers and workers at the start
    double suspect_after_s = 10;       // a silent process counts as lost after so long
    double heartbeat_s = 1;
    double stall_timeout_s = 600;               // the job ends when nothing has moved for so long
    StateLoss recovery = StateLoss::kContinue;  // after partitions lost the state they carried
    int replicas = 1;        // how many servers keep each version in memory: 1, 2
    int server_threads = 1;  // arithmetic threads of one server
    std::string keys;        // the folder of keys; "": none
    bool insecure = false;   // serve other than loopback and ipc addresses without keys
    int64_t chunk_kib = 1024;

    bool KeepsVersionsTwice() const { return replicas > 1 && servers.size() > 1; }
  } cluster;

  struct Http {           // [http]
    std::string address;  // HOST:PORT where server 0 shows the job; "": nowhere
  } http;
};

}  // namespace kumo
