// Contradictions between settings, and notes about settings set in vain.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>

#include "common/base/address.h"
#include "common/base/file.h"
#include "common/base/shell_word.h"
#include "common/settings/parser.h"
#include "common/settings/round_problems.h"

namespace kumo {
namespace {

// "FILE:LINE: " of a key that was set, or "".
std::string Where(const std::string& key, const Origins& origins) {
  const auto origin = origins.find(key);
  return origin == origins.end() ? "" : origin->second + ": ";
}

// The address with one name for this machine's loopback address; an invalid one as it is.
std::string OneName(const std::string& text) {
  Result<Address> address = ParseAddress(text);
  if (!address.ok()) return text;
  if (address->host == "localhost") address->host = "127.0.0.1";
  return address->ToString();
}

class Checker {
 public:
  Checker(const Experiment& experiment, const Origins& origins, std::vector<std::string>* problems,
          std::vector<std::string>* notes)
      : e_(experiment), origins_(origins), problems_(problems), notes_(notes) {}

  void Run() {
    CheckWorker();
    CheckNetwork();
    CheckData();
    CheckSync();
    CheckOptimiser();
    CheckSchedules();
    CheckInitialWeights();
    CheckCluster();
    CheckHttp();
    NoteNoEffect();
    NoteLateMilestones();
    NoteSmallSteps();
  }

 private:
  std::string Where(const std::string& key) const { return kumo::Where(key, origins_); }
  void Problem(const std::string& key, const std::string& what) {
    problems_->push_back(Where(key) + key + what);
  }
  void Report(const std::vector<SettingProblem>& problems) {
    for (const SettingProblem& problem : problems) Problem(problem.key, problem.what);
  }

  void CheckWorker() {
    if (!e_.worker.OwnsModel()) return;
    const Result<std::vector<std::string>> words = WordsOfCommand(e_.worker.command);
    if (!words.ok()) {
      Problem("worker.command", " = " + e_.worker.command + ": " + words.status().message());
    }
  }

  void CheckNetwork() {
    if (e_.network.file.empty() && !e_.worker.OwnsModel()) {
      Problem("network.file",
              " is not set; set it to the network's text protobuf (*.pbtxt), or worker.command to "
              "a program that trains a model of its own");
    }
  }

  // Two numbers, the smaller one first.
  void CheckRange(const char* key, const std::vector<double>& range) {
    if (range.size() == 2 && range[0] <= range[1]) return;
    Problem(key, " = " + WriteValue(range) +
                     ": must be two numbers, the minimum and the maximum, such as 0.5,1");
  }

  void CheckData() {
    if (e_.worker.OwnsModel()) return;
    const bool images = TraitsOf(e_.data.reader).samples == SampleKind::kImages;
    const std::string reader = "reader " + WriteValue(e_.data.reader);
    if (!e_.data.crop_area.empty()) CheckRange("data.crop_area", e_.data.crop_area);
    CheckRange("data.crop_aspect", e_.data.crop_aspect);
    if (e_.data.subtract_mean && !images) {
      Problem("data.subtract_mean",
              " = true: " + reader + " has no images; set data.subtract_mean = false");
    }
    if (e_.data.subtract_mean && !e_.data.mean.empty()) {
      Problem("data.mean", " = " + WriteValue(e_.data.mean) +
                               ": data.subtract_mean subtracts a mean already; choose one of them");
    }
    if (e_.data.mixup > 0 && e_.data.mixup < 0.05) {
      Problem("data.mixup", " = " + WriteValue(e_.data.mixup) +
                                ": must be 0 or at least 0.05; lower values mix almost nothing");
    }
    if (e_.data.classes == 1 && !TraitsOf(e_.data.reader).objects) {
      Problem("data.classes", " = 1: must be 0 or at least 2");
    }
    if (e_.data.classes == 0 && images && !TraitsOf(e_.data.reader).columns) {
      Problem("data.classes", " = 0: labels of " + reader +
                                  " are classes, not numbers; set it to the number of classes");
    }
    CheckClassShares(reader);
    if (e_.data.image_size.empty()) return;
    const Status status = ParseImageExtents(e_.data.image_size).status();
    if (!status.ok()) {
      Problem("data.image_size", " = " + e_.data.image_size + ": " + status.message());
    }
  }

  void CheckClassShares(const std::string& reader) {
    const ClassShares& shares = e_.data.class_shares;
    if (!shares.given()) return;
    const std::string value = " = " + WriteValue(shares) + ": ";
    if (TraitsOf(e_.data.reader).samples == SampleKind::kTokens) {
      Problem("data.class_shares",
              value + "samples of " + reader + " have no classes; remove the setting");
    } else if (e_.data.classes == 0) {
      Problem("data.class_shares", value +
                                       "with data.classes = 0 labels are numbers, and samples have "
                                       "no classes; remove the setting");
    } else if (!shares.equal && std::ssize(shares.of_class) != e_.data.classes) {
      Problem("data.class_shares", value + "there must be " + std::to_string(e_.data.classes) +
                                       " numbers (data.classes), not " +
                                       std::to_string(shares.of_class.size()));
    } else if (!shares.equal && std::ranges::max(shares.of_class) == 0) {
      Problem("data.class_shares", value + "must not all be 0");
    }
  }

  void CheckSync() {
    Report(ProblemsOfRounds(e_.sync));
    CheckCodecs();
    if (e_.sync.mode == SyncMode::kBlock) CheckBlocks();
    if (e_.sync.mode == SyncMode::kAsync && e_.sync.staleness > 0) CheckOnArrival();
    if (e_.sync.mode != SyncMode::kBlock && e_.sync.warmup_samples > 0) {
      Problem("sync.warmup_samples", " = " + std::to_string(e_.sync.warmup_samples) +
                                         ": must be 0 in " + WriteValue(e_.sync.mode) +
                                         " mode, which trains like a warm-up all the time");
    }
  }

  void CheckCodecs() {
    const std::string push = " = " + WriteValue(e_.sync.push_codec);
    if (CodecOf(e_.sync.push_codec).traits().needs_feedback && !e_.sync.error_feedback) {
      Problem("sync.error_feedback",
              " = false: sync.push_codec" + push +
                  " sends a part of a contribution only, and the rest would be lost for good; set "
                  "sync.error_feedback = true");
    }
    const Codec& larger =
        std::max(CodecOf(e_.sync.push_codec), CodecOf(e_.sync.pull_codec),
                 [](const Codec& a, const Codec& b) { return a.group() < b.group(); });
    const auto group = static_cast<int64_t>(larger.group());
    const int64_t group_kib = group * static_cast<int64_t>(sizeof(float)) / 1024;
    const int64_t chunk = e_.cluster.chunk_kib;
    if (larger.group() > Codec::kBucket && chunk % group_kib != 0) {
      Problem("cluster.chunk_kib",
              " = " + std::to_string(chunk) + ": " + std::string(larger.name()) +
                  " selects among " + std::to_string(group) +
                  " numbers, so chunks must be multiples of " + std::to_string(group_kib) +
                  " KiB; set cluster.chunk_kib = " +
                  std::to_string((chunk + group_kib - 1) / group_kib * group_kib));
    }
  }

  void CheckOptimiser() {
    if (!TraitsOf(e_.optimiser.type).steps_matrices) return;
    const std::string value = " = " + WriteValue(e_.optimiser.type) + ": ";
    if (e_.sync.mode != SyncMode::kBlock) {
      Problem("optimiser.type",
              value +
                  "it steps whole matrices, and servers hold parts of them; set sync.mode = "
                  "block, or take adamw");
    } else if (e_.sync.warmup_samples > 0) {
      Problem("optimiser.type",
              value +
                  "it steps whole matrices, and servers, which hold parts of them, step during "
                  "the warm-up; set sync.warmup_samples = 0, or take adamw");
    }
  }

  void CheckMomentum() {
    const OptimiserTraits& traits = TraitsOf(e_.optimiser.type);
    const std::string none = "optimiser.type = " + WriteValue(e_.optimiser.type) +
                             " has no momentum; take momentum or nesterov, or remove the setting";
    if (e_.optimiser.unit_gain && !traits.has_unit_gain) {
      Problem("optimiser.unit_gain",
              " = true: " + (traits.has_momentum ? "the momentum of optimiser.type = " +
                                                       WriteValue(e_.optimiser.type) +
                                                       " is a mean already; remove the setting"
                                                 : none));
    }
    if (!e_.schedule.time_constants.empty() && !traits.has_momentum) {
      Problem("schedule.time_constants",
              " = " + WriteValue(e_.schedule.time_constants) + ": " + none);
    }
  }

  void CheckSchedules() {
    CheckMomentum();
    CheckSchedule("schedule", e_.schedule, "schedule.learning_rate");
    CheckSchedule("block_schedule", e_.BlockSchedule(), "block.learning_rate");
  }

  void CheckSchedule(const std::string& section, const ScheduleSettings& schedule,
                     const std::string& base_rate) {
    Report(ProblemsOf(schedule, section, e_.job.epochs, std::nullopt));
    if (schedule.type == ScheduleType::kMultistep && schedule.milestones.empty()) {
      Problem(section + ".milestones",
              " is empty: " + section + ".type = multistep needs at least one");
    }
    if (schedule.final_rate > schedule.learning_rate) {
      Problem(section + ".final_rate", " = " + WriteValue(schedule.final_rate) +
                                           ": must be at most " + base_rate + " = " +
                                           WriteValue(schedule.learning_rate));
    }
  }

  // A job that starts anew moves its checkpoints aside before a worker reads them.
  void CheckInitialWeights() {
    const std::string& from = e_.network.initial_weights;
    if (from.empty() && !e_.network.initial_names.empty()) {
      Problem("network.initial_names",
              " = " + e_.network.initial_names +
                  ": maps tensor names of network.initial_weights, which is not set");
    }
    if (from.empty() || !e_.checkpoint.resume.never() || e_.output.directory.empty()) return;
    const std::string output = CanonicalFolder(e_.output.directory);
    const std::string weights = CanonicalFolder(from);
    if (weights != output && !weights.starts_with(CanonicalFolder(output + "checkpoints"))) return;
    Problem("network.initial_weights",
            " = " + from +
                ": checkpoint.resume = never moves the checkpoints of output.directory aside; "
                "choose another output.directory");
  }

  void CheckCluster() {
    const auto& cluster = e_.cluster;
    if (cluster.servers.size() > kMaxServers) {
      Problem("cluster.servers", ": names " + std::to_string(cluster.servers.size()) +
                                     " servers; must be at most " + std::to_string(kMaxServers));
    }
    std::map<std::string, std::string> seen;
    for (const std::string& text : cluster.servers) {
      const auto [first, is_new] = seen.emplace(OneName(text), text);
      if (!is_new && first->second == text) {
        Problem("cluster.servers", ": names " + text + " twice; name each server once");
      } else if (!is_new) {
        Problem("cluster.servers",
                ": " + first->second + " and " + text + " are one address; name each server once");
      }
      CheckServer(text);
    }
    if (!cluster.servers.empty()) {
      const std::string problem =
          ProblemOfReplicas(e_, origins_, static_cast<int>(cluster.servers.size()));
      if (!problem.empty()) problems_->push_back(problem);
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
              ": no process can connect to " + text + "; name the server's host and port");
    } else if (!IsLoopbackHost(address->host) && e_.cluster.keys.empty() && !e_.cluster.insecure) {
      Problem("cluster.servers",
              ": other machines can reach " + text +
                  "; set cluster.keys to a folder made by kumo keys or, if the network is trusted, "
                  "cluster.insecure = true");
    }
  }

  void CheckHttp() {
    const std::string& text = e_.http.address;
    if (text.empty()) return;
    const Result<Address> page = ParseHttpAddress(text);
    if (!page.ok()) {
      Problem("http.address", ": " + page.status().message());
      return;
    }
    // Server 0 serves the page.
    const std::vector<std::string>& servers = e_.cluster.servers;
    const Result<Address> server =
        servers.empty() ? Result<Address>(Address()) : ParseAddress(servers.front());
    if (!server.ok() || server->kind != Address::Kind::kTcp || page->port == 0) return;
    const bool everywhere = page->host == "*" || page->host == "0.0.0.0" || page->host == "::";
    if (page->port != server->port) return;
    if (!everywhere && OneName("tcp://" + text) != OneName(servers.front())) return;
    Problem("http.address", " = " + text + ": is the address of server 0, " + servers.front() +
                                "; choose another port");
  }

  // Settings that were set in vain.
  void NoteNoEffect() {
    for (const Option& option : OptionTable::Shared().options()) {
      const auto origin = origins_.find(option.key);
      if (origin == origins_.end()) continue;
      const std::string why = option.WhyNoEffect(e_);
      if (why.empty()) continue;
      notes_->push_back(origin->second + ": " + option.key + " has no effect: " + why);
    }
  }

  // A job that is shortened on the command line ends earlier on purpose.
  void NoteLateMilestones() {
    if (Where("job.epochs").starts_with("--")) return;
    NoteLateMilestones("schedule", e_.schedule);
    NoteLateMilestones("block_schedule", e_.block_schedule);
  }
  void NoteLateMilestones(const std::string& section, const ScheduleSettings& schedule) {
    if (schedule.unit != PositionUnit::kEpoch || schedule.milestones.empty()) return;
    const std::string key = section + ".milestones";
    const double last = schedule.milestones.back();
    if (last < e_.job.epochs || !OptionTable::Shared().Find(key)->WhyNoEffect(e_).empty()) return;
    notes_->push_back(Where(key) + key + " = " + WriteValue(schedule.milestones) +
                      ": the job ends before " + WriteValue(last) +
                      " (job.epochs = " + std::to_string(e_.job.epochs) + ")");
  }

  void CheckOnArrival() {
    if (!e_.sync.PullCodec().codes_weights()) {
      Problem("sync.pull_codec", " = " + WriteValue(e_.sync.pull_codec) +
                                     ": it codes the difference from the version before, and in "
                                     "async mode workers hold no versions; set it to fp16 or fp32");
    }
    if (e_.cluster.replicas > 1) {
      Problem("cluster.replicas", " = " + std::to_string(e_.cluster.replicas) +
                                      ": in async mode the weights change between two versions, "
                                      "but a second server keeps whole versions; set it to 1");
    }
    notes_->push_back(
        Where("sync.mode") +
        "sync.mode = async: the weights depend on the order in which gradients arrive, "
        "so no two runs give the same bits");
  }

  void CheckBlocks() {
    const int fragments = e_.sync.fragments;
    if (fragments > 1 && e_.block.reset_local_state && TraitsOf(e_.optimiser.type).slots > 0) {
      Problem("sync.fragments",
              " = " + std::to_string(fragments) +
                  ": the weights of a partition are never all exchanged at once, "
                  "so there is no begin of a block at which its optimiser's state "
                  "could be reset; set block.reset_local_state = false");
    }
  }

  // With unit gain step k after a restart is 1 - m^k of the rate at momentum m, and each block
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
                      "optimiser.unit_gain = true: each block begins without momentum, so at a "
                      "momentum of " +
                      rounded(momentum) + " its steps are " + rounded(share) +
                      " of the learning rate on average; take no local momentum "
                      "(schedule.time_constants = 0,..., optimiser.momentum = 0), a longer "
                      "sync.block, or block.reset_local_state = false");
  }

  const Experiment& e_;
  const Origins& origins_;
  std::vector<std::string>* problems_;
  std::vector<std::string>* notes_;
};

}  // namespace

std::string ProblemOfReplicas(const Experiment& experiment, const Origins& origins, int servers) {
  const int replicas = experiment.cluster.replicas;
  if (replicas <= servers) return "";
  return Where("cluster.replicas", origins) + "cluster.replicas = " + std::to_string(replicas) +
         ": needs at least " + std::to_string(replicas) + " servers, but the job has " +
         std::to_string(servers) +
         "; add servers (cluster.servers or --servers) or set cluster.replicas = " +
         std::to_string(servers);
}

void CrossCheck(const Experiment& experiment, const Origins& origins,
                std::vector<std::string>* problems, std::vector<std::string>* notes) {
  Checker(experiment, origins, problems, notes).Run();
}

}  // namespace kumo
