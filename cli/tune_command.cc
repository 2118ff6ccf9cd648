// kumo tune: mode, block, codec and overlap for a network. kumo-worker measures the arithmetic of
// the experiment; a model (cli/tune/prediction.h) predicts rounds over the links that the user
// names.

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "cli/launch/json_answer.h"
#include "cli/tune/prediction.h"
#include "common/base/json.h"
#include "common/base/text_table.h"
#include "common/job/round_time.h"
#include "common/job/shard_map.h"

namespace kumo {
namespace {

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

Result<SpeedMeasurement> Measure(const Arguments& arguments) {
  ChildSpec spec;
  spec.command = arguments.experiment.Forward();
  spec.command.insert(spec.command.begin(), arguments.experiment.Binary("kumo-worker"));
  spec.command.insert(spec.command.end(), {"--speed", WriteValue(arguments.seconds)});
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  std::string output;
  KUMO_ASSIGN_OR_RETURN(const ChildEnd end, RunChild(spec, &output));
  if (end.code != 0) return ErrorOf("kumo-worker --speed", end, output);
  SpeedMeasurement measured;
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

std::string Joined(const std::vector<std::string>& words, const std::string& before) {
  std::string text;
  for (const std::string& word : words) text += " " + before + word;
  return text;
}

void PrintText(const CliEnvironment& environment, const Arguments& arguments,
               const SpeedMeasurement& measured, const RoundLoad& load,
               const std::vector<RoundPrediction>& predictions) {
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
  for (const RoundPrediction& one : predictions) {
    rows.push_back({WriteValue(one.mode), std::to_string(one.block), std::to_string(one.overlap),
                    one.codec->name, Format("%.3f", one.time.round_s),
                    Format("%.0f", one.samples_per_s),
                    Format("%.1f", one.time.utilisation() * 100)});
  }
  std::fputs(FormatTextTable(header, rows, environment.columns).c_str(), stdout);
  const RoundPrediction& best = BestPrediction(predictions);
  Print(environment, "\ntake     --workers " + std::to_string(load.workers) + " --servers " +
                         std::to_string(load.servers) + Joined(best.Settings(), "--set ") + "\n" +
                         ReasonFor(best));
}

void PrintJson(const SpeedMeasurement& measured, const Arguments& arguments, const RoundLoad& load,
               const std::vector<RoundPrediction>& predictions) {
  const auto fields = [](const RoundPrediction& one) {
    JsonArray settings;
    for (const std::string& setting : one.Settings()) settings.Add(setting);
    return JsonFields()
        .Add("mode", WriteValue(one.mode))
        .Add("block", one.block)
        .Add("overlap", one.overlap)
        .Add("codec", one.codec->name)
        .Add("round_s", one.time.round_s)
        .Add("samples_per_round", one.samples_per_round)
        .Add("samples_per_second", one.samples_per_s)
        .Add("utilisation", one.time.utilisation())
        .Add("settings", settings);
  };
  JsonArray all;
  for (const RoundPrediction& one : predictions) all.Add(fields(one));
  std::printf("%s\n", JsonFields()
                          .Add("parameters", measured.parameters)
                          .Add("step_ms", measured.step_s * 1e3)
                          .Add("bits_per_second", arguments.network.bits_per_s)
                          .Add("delay_ms", arguments.network.delay_s * 1e3)
                          .Add("workers", load.workers)
                          .Add("servers", load.servers)
                          .Add("choices", all)
                          .Add("take", fields(BestPrediction(predictions)))
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
  KUMO_ASSIGN_OR_RETURN(const SpeedMeasurement measured, Measure(arguments));
  const auto allows = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> sets = arguments.experiment.sets;
    sets.insert(sets.end(), settings.begin(), settings.end());
    return ParseExperiment(arguments.experiment.file, sets, environment.variables).status();
  };
  KUMO_ASSIGN_OR_RETURN(const std::vector<RoundPrediction> predictions,
                        PredictRounds(experiment, measured, load, arguments.network, allows));
  if (arguments.json) {
    PrintJson(measured, arguments, load, predictions);
  } else {
    PrintText(environment, arguments, measured, load, predictions);
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
                   "codecs on this machine;\n--bandwidth is required, --latency is optional.");
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
