// kumo tune: mode, block, codec and overlap for a network. kumo-worker measures the arithmetic of
// the experiment; a model (common/job/round_time.h) predicts rounds over the links that the user
// names.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "cli/launch/json_answer.h"
#include "common/base/json.h"
#include "common/base/text_table.h"
#include "common/job/round_time.h"
#include "common/job/shard_map.h"

namespace kumo {
namespace {

constexpr int kBlocks[] = {8, 32, 128};
// Delays of gradients, in rounds. Longer ones cost more accuracy than blocks do.
constexpr int kDelays[] = {0, 1};
// Utilisation above which a longer block or a shorter codec brings nothing that matters.
constexpr double kEnough = .95;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kRates[] = {{"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}};
constexpr Unit kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

// The value of "100Mbit/s" or "10 ms": a positive number (or 0, if `zero`) with one of the units.
// nullopt for other texts.
std::optional<double> ReadQuantity(const std::string& text, std::span<const Unit> units,
                                   bool zero) {
  char* end = nullptr;
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return std::nullopt;
  const double number = std::strtod(text.c_str(), &end);
  std::string_view unit = end;
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::ranges::find(units, unit, &Unit::name);
  if (found == units.end() || !(number < 1e9) || (number == 0 && !zero)) return std::nullopt;
  return number * found->factor;
}

struct Arguments {
  explicit Arguments(const CliEnvironment& environment) : experiment(environment) {}

  ExperimentArguments experiment;
  std::string bandwidth, latency = "0ms";
  int workers = 0, servers = 0;  // 0: the experiment's
  bool apart = false;
  double seconds = 5;
  bool json = false;
  NetworkSpeed network;

  // Reads the two quantities.
  Status Check() {
    if (bandwidth.empty()) {
      return InvalidArgument(
          "--bandwidth is missing; give the rate of a host's link, for example --bandwidth "
          "100Mbit/s (iperf3 measures it between two hosts)");
    }
    const auto rate = ReadQuantity(bandwidth, kRates, /*zero=*/false);
    if (!rate) {
      return InvalidArgument("--bandwidth " + bandwidth +
                             ": not a rate; write a number with kbit/s, Mbit/s or Gbit/s, for "
                             "example 100Mbit/s");
    }
    const auto delay = ReadQuantity(latency, kTimes, /*zero=*/true);
    if (!delay) {
      return InvalidArgument("--latency " + latency +
                             ": not a time; write a number with us, ms or s, for example 10ms");
    }
    network = {*rate, *delay};
    return OkStatus();
  }
};

struct Codec {
  std::string name;
  double push_bytes = 0, pull_bytes = 0;
  RoundSpeed speed;
};

// The answer of kumo-worker --speed.
struct Measured {
  double parameters = 0;
  double train_samples = 0;
  int minibatch = 1;
  double step_s = 0;
  std::vector<Codec> codecs;
};

Result<Measured> Measure(const Arguments& arguments) {
  ChildSpec spec;
  spec.command = arguments.experiment.Forward();
  spec.command.insert(spec.command.begin(), arguments.experiment.Binary("kumo-worker"));
  spec.command.insert(spec.command.end(), {"--speed", WriteValue(arguments.seconds)});
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  std::string output;
  KUMO_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(spec, &output));
  if (end.code != 0) return ErrorOf("kumo-worker --speed", end, output);
  Measured measured;
  const JsonAnswer answer = JsonAnswer::LineIn(output);
  measured.parameters = answer.Number("parameters");
  measured.train_samples = answer.Number("train_samples");
  measured.minibatch = static_cast<int>(answer.Number("minibatch"));
  measured.step_s = answer.Number("step_s");
  for (const JsonAnswer& codec : answer.Objects("codecs")) {
    measured.codecs.push_back({.name = codec.Text("codec"),
                               .push_bytes = codec.Number("push_bytes"),
                               .pull_bytes = codec.Number("pull_bytes"),
                               .speed = {.step_s = measured.step_s,
                                         .encode_s = codec.Number("encode_s"),
                                         .install_s = codec.Number("install_s"),
                                         .add_s = codec.Number("add_s"),
                                         .close_s = codec.Number("close_s"),
                                         .codes_beside_steps = answer.Flag("codes_beside_steps")}});
  }
  if (measured.codecs.empty() || measured.train_samples < 1) {
    return Internal("kumo-worker --speed printed no speeds; it is of another version than kumo");
  }
  return measured;
}

std::string Format(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

// Settings of the exchange, and what they lead to.
struct Choice {
  SyncMode mode = SyncMode::kGradient;
  int block = 1;
  int overlap = 0;  // of gradients: the delay
  bool ends_warm_up = false;
  bool ends_fragments = false;  // of the experiment: the weights are exchanged as a whole
  const Codec* codec = nullptr;
  RoundTime time = {};
  double samples_per_round = 0;
  double samples_per_s = 0;

  std::vector<std::string> Settings() const {
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
};

// Modes, blocks and overlaps in the order of preference: gradients before blocks, which are trained
// apart from each other; short blocks first, then without overlap. Of blocks that are as long as an
// epoch or longer, which are all the same, only the shortest. minibatches: of a partition, in an
// epoch.
std::vector<Choice> Shapes(const Experiment& experiment, int64_t minibatches) {
  std::vector<Choice> shapes;
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

// For each shape the exact codecs first. Choices that the experiment refuses are left out.
Result<std::vector<Choice>> Predict(const CliEnvironment& environment, const Arguments& arguments,
                                    const Experiment& experiment, const Measured& measured,
                                    RoundLoad load) {
  std::vector<Choice> choices;
  Status refused = Internal("no mode to predict");
  const double samples_of_step = static_cast<double>(load.partitions) * measured.minibatch;
  const auto minibatches =
      static_cast<int64_t>(std::ceil(measured.train_samples / samples_of_step));
  for (Choice choice : Shapes(experiment, minibatches)) {
    choice.ends_fragments = experiment.sync.fragments > 1 || experiment.sync.local_share > 0;
    const bool delayed = choice.mode == SyncMode::kGradient;
    load.steps = choice.block;
    load.delay = delayed ? choice.overlap : 0;
    load.overlap = delayed ? 0 : choice.overlap;
    for (const Codec& codec : measured.codecs) {
      choice.codec = &codec;
      std::vector<std::string> sets = arguments.experiment.sets;
      for (const std::string& setting : choice.Settings()) sets.push_back(setting);
      const auto allowed = ParseExperiment(arguments.experiment.file, sets, environment.variables);
      if (!allowed.ok()) {
        refused = allowed.status();
        continue;
      }
      load.push_bytes = codec.push_bytes;
      load.pull_bytes = codec.pull_bytes;
      choice.time = PredictEpoch(load, minibatches, codec.speed, arguments.network);
      choice.samples_per_round =
          measured.train_samples / static_cast<double>(RoundsOfEpoch(load, minibatches));
      choice.samples_per_s = choice.samples_per_round / std::max(choice.time.round_s, 1e-9);
      choices.push_back(choice);
    }
  }
  if (choices.empty()) return refused;
  return choices;
}

// Words about the choice to take.
std::string Reason(const Choice& best) {
  const std::string enough = Format("%.0f", kEnough * 100) + " % of the time\n";
  if (best.time.utilisation() < kEnough) {
    return "the fastest of these; none computes " + enough;
  }
  if (best.mode == SyncMode::kBlock) return "the shortest block that computes " + enough;
  if (best.overlap == 0) return "without blocks, workers compute " + enough;
  return "without blocks, workers compute " + enough + "Each gradient is applied " +
         std::to_string(best.overlap) +
         " round late: if the loss does not fall, halve schedule.learning_rate, or take blocks.\n";
}

// The first choice that hides the network, or else the fastest one.
const Choice& Best(const std::vector<Choice>& choices) {
  const auto enough = std::ranges::find_if(
      choices, [](const Choice& choice) { return choice.time.utilisation() >= kEnough; });
  if (enough != choices.end()) return *enough;
  return *std::ranges::max_element(choices, {}, &Choice::samples_per_s);
}

std::string Joined(const std::vector<std::string>& words, const std::string& before) {
  std::string text;
  for (const std::string& word : words) text += " " + before + word;
  return text;
}

void PrintText(const CliEnvironment& environment, const Arguments& arguments,
               const Measured& measured, const RoundLoad& load,
               const std::vector<Choice>& choices) {
  Print(environment, "measured  " + Format("%.2f", measured.parameters / 1e6) +
                         " million parameters, a minibatch of " +
                         std::to_string(measured.minibatch) + " samples takes " +
                         Format("%.3g ms\n", measured.step_s * 1e3));
  const auto count = [](int number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  Print(environment, "assumed   links of " + arguments.bandwidth + ", " + arguments.latency +
                         " from host to host; " + count(load.workers, "worker") + ", " +
                         count(load.servers, "server") +
                         (load.beside ? " on the workers' hosts" : " on other hosts") + ", " +
                         count(load.partitions, "partition") + "\n");
  if (load.workers > load.partitions) {
    Print(environment, "note      " + count(load.workers - load.partitions, "worker") +
                           " would be idle; sync.partitions = " + std::to_string(load.workers) +
                           " gives each one a partition\n");
  }
  Print(environment, "\n");
  const std::vector<TextColumn> header = {{"mode", false},   {"block"},    {"overlap"},
                                          {"codec", false},  {"round, s"}, {"samples/s"},
                                          {"utilisation, %"}};
  std::vector<std::vector<std::string>> rows;
  for (const Choice& choice : choices) {
    rows.push_back({WriteValue(choice.mode), std::to_string(choice.block),
                    std::to_string(choice.overlap), choice.codec->name,
                    Format("%.3f", choice.time.round_s), Format("%.0f", choice.samples_per_s),
                    Format("%.1f", choice.time.utilisation() * 100)});
  }
  std::fputs(FormatTextTable(header, rows, environment.columns).c_str(), stdout);
  const Choice& best = Best(choices);
  Print(environment, "\ntake     --workers " + std::to_string(load.workers) + " --servers " +
                         std::to_string(load.servers) + Joined(best.Settings(), "--set ") + "\n" +
                         Reason(best));
}

void PrintJson(const Measured& measured, const Arguments& arguments, const RoundLoad& load,
               const std::vector<Choice>& choices) {
  const auto fields = [](const Choice& choice) {
    JsonArray settings;
    for (const std::string& setting : choice.Settings()) settings.Add(setting);
    return JsonFields()
        .Add("mode", WriteValue(choice.mode))
        .Add("block", choice.block)
        .Add("overlap", choice.overlap)
        .Add("codec", choice.codec->name)
        .Add("round_s", choice.time.round_s)
        .Add("samples_per_round", choice.samples_per_round)
        .Add("samples_per_second", choice.samples_per_s)
        .Add("utilisation", choice.time.utilisation())
        .Add("settings", settings);
  };
  JsonArray all;
  for (const Choice& choice : choices) all.Add(fields(choice));
  std::printf("%s\n", JsonFields()
                          .Add("parameters", measured.parameters)
                          .Add("step_ms", measured.step_s * 1e3)
                          .Add("bits_per_second", arguments.network.bits_per_s)
                          .Add("delay_ms", arguments.network.delay_s * 1e3)
                          .Add("workers", load.workers)
                          .Add("servers", load.servers)
                          .Add("choices", all)
                          .Add("take", fields(Best(choices)))
                          .object()
                          .c_str());
}

Status Tune(const CliEnvironment& environment, const Arguments& arguments) {
  KUMO_ASSIGN_OR_RETURN(
      const Experiment experiment,
      ParseExperiment(arguments.experiment.file, arguments.experiment.sets, environment.variables));
  RoundLoad load;
  load.workers = arguments.workers > 0 ? arguments.workers : experiment.cluster.workers;
  const int named = static_cast<int>(experiment.cluster.servers.size());
  load.servers = arguments.servers > 0 ? arguments.servers : named > 0 ? named : load.workers;
  load.partitions = experiment.sync.partitions;
  load.beside = !arguments.apart;
  if (load.beside && load.servers > load.workers) {
    return InvalidArgument(std::to_string(load.servers) + " servers on the hosts of " +
                           std::to_string(load.workers) +
                           " workers: give --servers at most the workers, or --apart");
  }
  KUMO_ASSIGN_OR_RETURN(const Measured measured, Measure(arguments));
  KUMO_ASSIGN_OR_RETURN(const std::vector<Choice> choices,
                        Predict(environment, arguments, experiment, measured, load));
  if (arguments.json) {
    PrintJson(measured, arguments, load, choices);
  } else {
    PrintText(environment, arguments, measured, load, choices);
  }
  return OkStatus();
}

}  // namespace

int RunTune(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo tune");
  Arguments arguments(environment);
  CommandLine line("kumo tune",
                   "Predicts samples per second for gradients and blocks with several codecs and "
                   "overlaps\non a given network, and says which to take. Measures the "
                   "experiment's minibatches and "
                   "codecs on this machine;\nbandwidth and latency are yours to give.");
  arguments.experiment.AddTo(&line);
  line.AddOption("bandwidth", "RATE", Allowed(),
                 "Rate of a host's link in each direction: a number with kbit/s, Mbit/s or Gbit/s",
                 &arguments.bandwidth, "none: it must be given");
  line.AddOption("latency", "TIME", Allowed(),
                 "One-way delay between hosts: a number with us, ms or s", &arguments.latency);
  line.AddOption("workers", "N", {.min = 1, .max = 4096}, "Number of workers", &arguments.workers,
                 "cluster.workers");
  line.AddOption("servers", "N", {.min = 1, .max = kMaxServers}, "Number of servers",
                 &arguments.servers, "as many as in cluster.servers, else as many as workers");
  line.AddFlag("apart", "Servers run on hosts of their own, not on the workers' hosts",
               &arguments.apart);
  line.AddOption("seconds", "S", {.min = 0, .max = 3600, .min_excluded = true},
                 "Time to train for the measurement, in seconds", &arguments.seconds);
  line.AddFlag("json", "Print one JSON object", &arguments.json);
  const auto check = [&]() -> Status { return arguments.Check(); };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  const Status status = Tune(environment, arguments);
  return status.ok() ? 0 : exit_reporter.Report(status);
}

}  // namespace kumo
