// An experiment: everything that a job's result depends on, and how this run of it is laid out.
//
// Parsed once into these plain structs; nothing reads a file or the environment later. Every field
// has a row in the option table (option_table.cc), which gives its key, default, unit, range and
// help text: the parser, `--help`, `kumo check` and docs/experiments.md all come from that table.
//
// Sections up to `Checkpoint` that say "(result)" are part of the experiment hash: processes that
// differ in one of them refuse each other. The others may differ from run to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/job/job_plan.h"
#include "common/optimiser/optimiser.h"
#include "common/optimiser/schedule.h"

namespace kumo {

struct BlockRuleSettings {
  std::string rule = "block_momentum";  // block_momentum, average
  std::string convention = "paper";     // paper, cntk
  bool nesterov = false;
  float momentum = 0.5f;          // eta (paper)
  float learning_rate = 1.0f;     // zeta (paper), blockLR (cntk)
  double time_constant = 0.0;     // cntk: tau_c in samples; 0: -B / ln(1 - 1/N)
  bool reset_local_state = true;  // the local optimiser's slots restart with each block

  // Whether the weights that are evaluated are another vector than what blocks start from.
  bool KeepsWeightsApart() const {
    return rule == "block_momentum" && convention == "paper" && nesterov;
  }
};

struct Experiment {
  struct Job {         // [job] (result)
    std::string name;  // letters, digits, '-', '_'; default: the file's stem
    uint64_t seed = 1;
    int epochs = 20;
  } job;

  struct Network {     // [network] (result)
    std::string file;  // text protobuf; a relative path is relative to the experiment file
    std::string device = "cpu";      // "cuda", "cuda:N"; not part of the hash
    std::string precision = "fp32";  // of activations: fp32, bf16, fp16
    bool tf32 = false;               // on a GPU
    bool deterministic = false;      // on a GPU; not part of the hash
    int threads = 1;                 // of one worker's arithmetic
    std::string initial_weights;     // a checkpoint, or a file of tensors, to start from, or empty
    std::string initial_names;  // a file that says what tensors there are called here, or empty
  } network;

  struct Data {  // [data] (result, but for the folders, decode, prefetch and threads)
    std::string reader = "idx";
    std::string directory;  // default: $KUMO_DATA, handed in by main
    std::string cache;      // for what packed files hold; "": none. Default: the user's, likewise
    std::string train_images = "mnist/train-images-idx3-ubyte.gz";
    std::string train_labels = "mnist/train-labels-idx1-ubyte.gz";
    std::string validation_images = "mnist/t10k-images-idx3-ubyte.gz";
    std::string validation_labels = "mnist/t10k-labels-idx1-ubyte.gz";
    std::string text;                   // a file that is both sets
    std::string tokens = "characters";  // of a text: characters, bytes
    int64_t window = 64;                // tokens of a sample
    int64_t windows = 0;                // samples of an epoch; 0: as many as lie side by side
    double validation_share = 0.1;      // of a text: its last part
    std::string image_size;          // "3x32x32", that all images are made to have; "": as they are
    std::string damaged = "refuse";  // images: refuse, skip
    std::string decode = "auto";     // when images are: auto, start, demand
    std::string ctf_features = "features";  // streams of ctf
    std::string ctf_labels = "labels";
    double scale = 1.0 / 255.0;     // pixels are multiplied by it
    bool subtract_mean = false;     // the training set's mean image, before that
    std::vector<double> mean;       // of each channel, after scale; subtracted
    std::vector<double> deviation;  // of each channel, after scale; divided by
    std::vector<double> crop_area;  // shares of a training image that are cropped; empty: all
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
    int64_t train_limit = 0;  // use only the first so many samples; 0: all
    int64_t validation_limit = 0;
    int prefetch = 4;  // minibatches prepared ahead
    int threads = 0;   // that read and transform them; 0: by the machine
  } data;

  struct Sync {  // [sync] (result)
    SyncMode mode = SyncMode::kBlock;
    int partitions = 2;
    int minibatch = 64;          // samples of one partition's minibatch
    int block = 50;              // minibatches between two synchronisations, block mode
    int64_t warmup_samples = 0;  // full-precision gradient mode at first, block mode only
    std::string push_codec = "fp32";
    std::string pull_codec = "fp32";  // fp32, fp16
    bool error_feedback = true;
  } sync;

  BlockRuleSettings block;      // [block] (result)
  OptimiserSettings optimiser;  // [optimiser] (result)
  ScheduleSettings schedule;    // [schedule] (result)

  struct Evaluation {      // [evaluation] (result)
    int every_epochs = 1;  // 0: only after the last
    int minibatch = 256;
  } evaluation;

  struct CheckpointOptions {       // [checkpoint]
    int64_t every_rounds = 0;      // 0: not by rounds
    int every_epochs = 0;          // 0: not by epochs
    double every_minutes = 10;     // 0: not by time
    int keep = 2;                  // newest checkpoints kept
    std::string best = "none";     // and the best one, by a metric: accuracy, loss, ...; none
    std::string resume = "auto";   // auto, never, must, or a round number
    bool continues = false;        // also from a checkpoint of other settings
    double grace_s = 25;           // limit of saving and leaving after SIGTERM
    std::string disks = "shared";  // one output.directory for all servers, or private ones

    bool HasPrivateDisks() const { return disks == "private"; }
  } checkpoint;

  struct Output {               // [output]
    std::string directory;      // default: out/<job.name>
    std::string final_model;    // folder that gets a copy of the last checkpoint; "": none
    double interval_s = 2;      // seconds between two progress lines
    int points_per_epoch = 50;  // of the curves
    bool tensorboard = true;
    bool jsonl = true;
  } output;

  struct Cluster {                     // [cluster]
    std::vector<std::string> servers;  // one address per server: tcp://host:port or ipc://path
    int workers = 2;                   // wait for so many at the start
    int min_workers = 1;               // wait while there are fewer
    double join_timeout_s = 60;        // limit of waiting for servers and workers at the start
    double suspect_after_s = 10;       // a silent process counts as lost after so long
    double heartbeat_s = 1;
    double stall_timeout_s = 600;       // the job ends when nothing has moved for so long
    std::string recovery = "continue";  // continue, exact: after a loss of what partitions carried
    int replicas = 1;                   // how many servers keep each version in memory: 1, 2
    int server_threads = 1;             // arithmetic threads of one server
    std::string keys;                   // the folder of keys; "": none
    bool insecure = false;              // serve other than loopback and ipc addresses without keys
    int64_t chunk_kib = 1024;

    bool KeepsVersionsTwice() const { return replicas > 1 && servers.size() > 1; }
  } cluster;

  struct Http {           // [http]
    std::string address;  // HOST:PORT where server 0 shows the job; "": nowhere
  } http;
};

}  // namespace kumo
