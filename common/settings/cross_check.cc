// What settings say about each other.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "common/job/fields.h"
#include "common/job/shard_map.h"
#include "common/settings/parser.h"
#include "common/transport/address.h"

namespace kumo {
namespace {

class Checker {
 public:
  Checker(const Experiment& experiment, const Origins& origins, std::vector<std::string>* problems,
          std::vector<std::string>* notes)
      : e_(experiment), origins_(origins), problems_(problems), notes_(notes) {}

  void Run() {
    CheckNetwork();
    CheckData();
    CheckSync();
    CheckSchedule();
    CheckCheckpoint();
    CheckInitialWeights();
    CheckCluster();
    CheckHttp();
    NoteWithoutEffectOnData();
    NoteWithoutEffectOnSteps();
    NoteWithoutEffect();
    NoteSmallSteps();
  }

 private:
  // "FILE:LINE: " of a key that was set, or "".
  std::string Where(const std::string& key) const {
    const auto origin = origins_.find(key);
    return origin == origins_.end() ? "" : origin->second + ": ";
  }
  void Problem(const std::string& key, const std::string& what) {
    problems_->push_back(Where(key) + key + what);
  }

  // A key that was set but changes nothing; the first reason says it.
  void Note(const std::string& key, const std::string& why) {
    const auto origin = origins_.find(key);
    if (origin != origins_.end() && noted_.insert(key).second) {
      notes_->push_back(origin->second + ": " + key + " has no effect: " + why);
    }
  }

  void CheckNetwork() {
    if (e_.network.file.empty()) {
      Problem("network.file", " is not set: name the network's text protobuf (*.pbtxt)");
    }
  }

  // Two numbers, the least one first.
  void CheckRange(const char* key, const std::vector<double>& range) {
    if (range.size() == 2 && range[0] <= range[1]) return;
    Problem(key, " = " + WriteValue(range) + ": must be the least and the most, as 0.5,1");
  }

  void CheckData() {
    if (!e_.data.crop_area.empty()) CheckRange("data.crop_area", e_.data.crop_area);
    CheckRange("data.crop_aspect", e_.data.crop_aspect);
    if (e_.data.subtract_mean && (e_.data.reader == "ctf" || e_.data.reader == "text")) {
      Problem("data.subtract_mean",
              " = true: reader " + e_.data.reader + " has no images to take the mean of");
    }
    if (e_.data.subtract_mean && !e_.data.mean.empty()) {
      Problem("data.mean", " = " + WriteValue(e_.data.mean) +
                               ": data.subtract_mean subtracts a mean already; choose one of them");
    }
    if (e_.data.mixup > 0 && e_.data.mixup < 0.05) {
      Problem("data.mixup", " = " + WriteValue(e_.data.mixup) +
                                ": must be 0.05 at least, or 0: below it next to nothing is mixed");
    }
    if (e_.data.classes == 1) Problem("data.classes", " = 1: there must be 2, to tell them apart");
    if (e_.data.classes == 0 && e_.data.reader != "ctf" && e_.data.reader != "text") {
      Problem("data.classes", " = 0: reader " + e_.data.reader +
                                  " has classes as labels, not numbers; say how many there are");
    }
    if (e_.data.image_size.empty()) return;
    const Status status = ParseImageExtents(e_.data.image_size).status();
    if (!status.ok()) {
      Problem("data.image_size", " = " + e_.data.image_size + ": " + status.message());
    }
  }

  void CheckSync() {
    if (e_.sync.mode == SyncMode::kGradient && e_.sync.warmup_samples > 0) {
      Problem("sync.warmup_samples", " = " + std::to_string(e_.sync.warmup_samples) +
                                         ": must be 0 in gradient mode, which is its own warm-up");
    }
  }

  void CheckStages(const char* setting, const std::vector<double>& values, const char* wanted_by) {
    const size_t stages = e_.schedule.milestones.size() + 1;
    if (values.size() == stages) return;
    Problem(setting, " has " + std::to_string(values.size()) + " values: " + wanted_by + " " +
                         std::to_string(stages) + ", one more than schedule.milestones has");
  }

  void CheckMomentum() {
    const OptimiserSettings& optimiser = e_.optimiser;
    if (optimiser.type == "momentum" || optimiser.type == "nesterov") return;
    const std::string none = "optimiser.type = " + optimiser.type + " has no momentum";
    if (optimiser.unit_gain) Problem("optimiser.unit_gain", " = true: " + none);
    if (!e_.schedule.time_constants.empty()) {
      Problem("schedule.time_constants",
              " = " + WriteValue(e_.schedule.time_constants) + ": " + none);
    }
  }

  void CheckSchedule() {
    const ScheduleSettings& schedule = e_.schedule;
    if (schedule.type == "stages") {
      CheckStages("schedule.rates", schedule.rates, "schedule.type = stages needs");
    }
    if (!schedule.time_constants.empty()) {
      CheckStages("schedule.time_constants", schedule.time_constants, "there must be");
    }
    CheckMomentum();
    if (schedule.type == "multistep" && schedule.milestones.empty()) {
      Problem("schedule.milestones", " is empty: schedule.type = multistep needs at least one");
    }
    if (std::adjacent_find(schedule.milestones.begin(), schedule.milestones.end(),
                           std::greater_equal<>()) != schedule.milestones.end()) {
      Problem("schedule.milestones", " = " + WriteValue(schedule.milestones) + ": must ascend");
    }
    if (schedule.unit == "epoch" && schedule.warmup > e_.job.epochs) {
      Problem("schedule.warmup",
              " = " + WriteValue(schedule.warmup) +
                  ": must be at most job.epochs = " + std::to_string(e_.job.epochs));
    }
    if (schedule.final_rate > schedule.learning_rate) {
      Problem("schedule.final_rate", " = " + WriteValue(schedule.final_rate) +
                                         ": must be at most schedule.learning_rate = " +
                                         WriteValue(schedule.learning_rate));
    }
  }

  void CheckCheckpoint() {
    const std::string& resume = e_.checkpoint.resume;
    const bool word = resume == "auto" || resume == "never" || resume == "must";
    const bool number = !resume.empty() && resume.size() <= 18 &&
                        resume.find_first_not_of("0123456789") == std::string::npos;
    if (!word && !number) {
      Problem("checkpoint.resume",
              " = " + resume + ": must be auto, never, must or a round number");
    }
  }

  // A job that starts anew sets its checkpoints aside before a worker reads them.
  void CheckInitialWeights() {
    const std::string& from = e_.network.initial_weights;
    if (from.empty() && !e_.network.initial_names.empty()) {
      Problem("network.initial_names",
              " = " + e_.network.initial_names +
                  ": names tensors of network.initial_weights, which is not set");
    }
    if (from.empty() || e_.checkpoint.resume != "never" || e_.output.directory.empty()) return;
    const auto own = std::filesystem::absolute(e_.output.directory) / "checkpoints/";
    const std::string normal = (std::filesystem::absolute(from) / "").lexically_normal().string();
    const std::string output = (own / "..").lexically_normal().string();
    if (normal != output && !normal.starts_with(own.lexically_normal().string())) return;
    Problem("network.initial_weights",
            " = " + from +
                ": checkpoint.resume = never sets the checkpoints of output.directory "
                "aside; choose another output.directory");
  }

  void CheckCluster() {
    const auto& cluster = e_.cluster;
    if (cluster.servers.size() > ShardMap::kMaxServers) {
      Problem("cluster.servers", ": names " + std::to_string(cluster.servers.size()) +
                                     " servers; must be at most " +
                                     std::to_string(ShardMap::kMaxServers));
    }
    std::set<std::string> seen;
    for (const std::string& text : cluster.servers) {
      if (!seen.insert(text).second) Problem("cluster.servers", ": names " + text + " twice");
      CheckServer(text);
    }
    if (cluster.replicas > 1 && cluster.servers.size() == 1) {
      Problem("cluster.replicas", " = " + std::to_string(cluster.replicas) +
                                      ": needs as many servers; cluster.servers names one");
    }
    if (cluster.heartbeat_s * 2 > cluster.suspect_after_s) {
      Problem("cluster.suspect_after_s", " = " + WriteValue(cluster.suspect_after_s) +
                                             ": must be at least twice cluster.heartbeat_s = " +
                                             WriteValue(cluster.heartbeat_s));
    }
  }

  // An address that processes connect to.
  void CheckServer(const std::string& text) {
    const Result<Address> address = ParseAddress(text);
    if (!address.ok()) {
      Problem("cluster.servers", ": " + address.status().message());
      return;
    }
    if (address->kind == Address::Kind::kIpc) return;
    if (address->host == "*" || address->host == "0.0.0.0" || address->host == "::" ||
        address->port == 0) {
      Problem("cluster.servers",
              ": nobody can connect to " + text + "; name the server's host and port");
    } else if (!IsLoopbackHost(address->host) && e_.cluster.keys.empty() && !e_.cluster.insecure) {
      Problem("cluster.servers",
              ": " + text +
                  " can be reached by others: set cluster.keys to the folder that kumo keys makes, "
                  "or, where that network is trusted, cluster.insecure = true");
    }
  }

  void CheckHttp() {
    const std::string& text = e_.http.address;
    if (text.empty()) return;
    const Status status = ParseHttpAddress(text).status();
    if (!status.ok()) Problem("http.address", ": " + status.message());
  }

  void NoteWithoutEffectOnData() {
    const std::string& of = e_.data.reader;
    const bool text = of == "text";
    const bool images = of == "image_folder" || of == "image_map";
    const std::string reader = "data.reader is " + of;
    for (const char* key : {"data.train_labels", "data.validation_labels"}) {
      if (of != "idx" && !text) Note(key, reader + ", which has the labels with the images");
      if (text) Note(key, reader);
    }
    for (const char* key :
         {"data.train_images", "data.validation_images", "data.image_size", "data.scale",
          "data.mean", "data.deviation", "data.crop_area", "data.crop_aspect", "data.shorter_side",
          "data.crop_pad", "data.pad_value", "data.flip", "data.brightness", "data.contrast",
          "data.saturation", "data.hue", "data.cutout", "data.mixup", "data.classes"}) {
      if (text) Note(key, reader);
    }
    for (const char* key :
         {"data.text", "data.tokens", "data.window", "data.windows", "data.validation_share"}) {
      if (!text) Note(key, reader);
    }
    const bool scaled = !e_.data.crop_area.empty() || e_.data.shorter_side > 0;
    if (!images && !scaled && of != "ctf") Note("data.image_size", reader);
    for (const char* key : {"data.damaged", "data.decode"}) {
      if (!images) Note(key, reader);
    }
    for (const char* key : {"data.ctf_features", "data.ctf_labels"}) {
      if (of != "ctf") Note(key, reader);
    }
    if (of == "ctf") Note("data.scale", reader + ", whose numbers are taken as they are");
    if (e_.data.crop_area.empty()) Note("data.crop_aspect", "data.crop_area is empty");
    if (e_.data.crop_pad == 0) Note("data.pad_value", "data.crop_pad is 0");
  }

  void NoteUnless(bool used, std::initializer_list<const char*> keys, const std::string& why) {
    if (used) return;
    for (const char* key : keys) Note(key, why);
  }

  void NoteWithoutEffectOnSteps() {
    const ScheduleSettings& schedule = e_.schedule;
    const std::string& type = schedule.type;
    const std::string by_type = "schedule.type is " + type;
    const bool staged = type == "multistep" || type == "stages";
    const bool used = staged || !schedule.time_constants.empty();  // the milestones
    const bool falls = type == "poly" || type == "cosine";
    NoteUnless(type != "stages", {"schedule.learning_rate"}, by_type);
    NoteUnless(type == "stages", {"schedule.rates"}, by_type);
    NoteUnless(type == "step", {"schedule.step"}, by_type);
    NoteUnless(type == "step" || type == "multistep", {"schedule.gamma"}, by_type);
    NoteUnless(type == "poly", {"schedule.power"}, by_type);
    NoteUnless(falls, {"schedule.final_rate"}, by_type);
    NoteUnless(used, {"schedule.milestones"}, by_type);
    const std::string& rule = e_.optimiser.type;
    const std::string by_rule = "optimiser.type is " + rule;
    NoteUnless(rule == "momentum" || rule == "nesterov", {"optimiser.momentum"}, by_rule);
    NoteUnless(schedule.time_constants.empty(), {"optimiser.momentum"},
               "schedule.time_constants is set");
    NoteUnless(rule == "adam" || rule == "adamw",
               {"optimiser.beta1", "optimiser.beta2", "optimiser.epsilon"}, by_rule);
    // Who shortens a job on the command line knows that it ends before.
    const bool shortened = Where("job.epochs").starts_with("--");
    if (!used || shortened || schedule.unit != "epoch" || schedule.milestones.empty()) return;
    const double last = schedule.milestones.back();
    if (last < e_.job.epochs) return;
    notes_->push_back(Where("schedule.milestones") + "schedule.milestones = " +
                      WriteValue(schedule.milestones) + ": the job ends before " +
                      WriteValue(last) + " (job.epochs = " + std::to_string(e_.job.epochs) + ")");
  }

  void NoteWithoutEffect() {
    if (e_.evaluation.every_epochs == 0 && e_.checkpoint.best != "none") {
      Note("checkpoint.best", "evaluation.every_epochs = 0 evaluates the last epoch alone");
    }
    if (e_.sync.push_codec == "fp32") Note("sync.error_feedback", "sync.push_codec is fp32");
    if (e_.checkpoint.resume == "never") Note("checkpoint.continue", "checkpoint.resume is never");
    if (e_.sync.mode == SyncMode::kGradient) {
      for (const auto& [key, origin] : origins_) {
        if (key.starts_with("block.") || key == "sync.block") Note(key, "sync.mode is gradient");
      }
      return;
    }
    if (e_.block.rule == "average") {
      for (const char* key : {"block.convention", "block.nesterov", "block.momentum",
                              "block.learning_rate", "block.time_constant"}) {
        Note(key, "block.rule is average");
      }
    } else if (e_.block.convention == "cntk") {
      Note("block.momentum", "block.convention = cntk takes block.time_constant");
    } else {
      Note("block.time_constant", "block.convention = paper takes block.momentum");
    }
  }

  // With unit gain step k after a restart is 1 - m^k of the rate at momentum m, and a block
  // restarts.
  void NoteSmallSteps() {
    if (e_.sync.mode != SyncMode::kBlock || !e_.optimiser.unit_gain) return;
    if (!e_.block.reset_local_state) return;
    double momentum = e_.schedule.time_constants.empty() ? e_.optimiser.momentum : 0;
    for (const double constant : e_.schedule.time_constants) {
      if (constant > 0) momentum = std::max(momentum, std::exp(-e_.sync.minibatch / constant));
    }
    const double steps = e_.sync.block;
    const double sum = momentum < 1 ? (1 - std::pow(momentum, steps)) / (1 - momentum) : steps;
    const double share = 1 - momentum * sum / steps;  // mean over the steps of a block
    if (share >= 0.5) return;
    const auto rounded = [](double x) { return WriteValue(std::round(x * 1000) / 1000); };
    notes_->push_back(Where("optimiser.unit_gain") +
                      "optimiser.unit_gain = true: each block begins without momentum, so that at "
                      "a momentum of " +
                      rounded(momentum) + " its steps are " + rounded(share) +
                      " of the learning rate on average; take no local momentum "
                      "(schedule.time_constants = 0,..., optimiser.momentum = 0), a longer "
                      "sync.block, or block.reset_local_state = false");
  }

  const Experiment& e_;
  const Origins& origins_;
  std::vector<std::string>* problems_;
  std::vector<std::string>* notes_;
  std::set<std::string> noted_;  // keys
};

}  // namespace

void CrossCheck(const Experiment& experiment, const Origins& origins,
                std::vector<std::string>* problems, std::vector<std::string>* notes) {
  Checker(experiment, origins, problems, notes).Run();
}

}  // namespace kumo
