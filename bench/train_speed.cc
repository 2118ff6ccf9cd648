// Training speed of one worker compared with PyTorch on the same work: forward, backward and
// optimiser step on random minibatches, one thread each, in turn so that both see the same machine.
// PyTorch gets the best of its settings, found first. Prints a table, then JSON.
//
//   KUMO_TORCH_PYTHON=/path/to/python train_speed [--work lenet,mlp] [--repeats 7] [--seconds 1]
//       [--device cpu] [--batch N] [--precision P] [--instruction-set LEVEL] [--kumo-only]
//       [--cpu-time] [--layers]
//
// --layers prints the time of each layer instead, and the share of the processor's maximum
// products. Work: lenet, mlp, convnet, resnet20, resnet50, vgg16 (its 3x3 convolutions are
// SSD300's), unet (a class for each pixel of 128 x 128), gpt (nanoGPT's CPU configuration), and
// resnet: a stack of convolutions, batch normalisation and ReLU with ResNet-50's shapes without its
// shortcuts, in bf16. Batch and precision default to the work's own.
// --instruction-set is network.instruction_set: Kumo's layers compute with that level.
//
// Without a Python that has PyTorch it prints Kumo's figures alone. Pin it to a core (taskset -c
// 0); on a shared machine, --cpu-time measures both sides by CPU time instead of wall time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/layer_times.h"
#include "bench/report.h"
#include "bench/torch_rival.h"
#include "bench/train_work.h"
#include "common/base/version.h"

namespace kumo {
namespace {

struct Arguments {
  std::string work = "lenet,mlp";
  std::string device = "cpu";
  int batch = 0;          // 0: the work's own
  std::string precision;  // empty: the work's own
  std::string instruction_set = "auto";
  int repeats = 7;
  double seconds = 1;
  bool kumo_only = false;
  bool cpu_time = false;
  bool layers = false;

  std::string ForTorch() const {
    return "--device " + device + " --batch " + std::to_string(batch) +
           (precision.empty() ? "" : " --precision ") + precision + (cpu_time ? " --cpu-time" : "");
  }
};

// A mode of PyTorch: eager, compiled, or a recorded graph.
struct Rival {
  std::string setting;  // best setting of the mode; begins with the mode's name
  std::vector<double> speeds;
  std::vector<double> ratios;  // Kumo's speed relative to it, by turn
};

struct Outcome {
  std::string work;
  std::vector<double> kumo;
  std::vector<Rival> rivals;
};

// The best setting of each mode over three turns, so that one disturbed turn does not select a bad
// setting for PyTorch.
std::vector<Rival> ChooseRivals(const Work& work, Torch& torch, double seconds) {
  std::map<std::string, std::pair<double, std::string>> best;  // by mode
  const std::vector<std::string> settings = torch.Settings(work.name);
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::string& setting : settings) {
      const double speed = torch.Measure(work.name, setting, seconds);
      std::pair<double, std::string>& of_mode = best[setting.substr(0, setting.find(','))];
      if (speed > of_mode.first) of_mode = {speed, setting};
    }
  }
  std::vector<Rival> rivals;
  for (const auto& [mode, chosen] : best) {
    if (!chosen.second.empty()) rivals.push_back({chosen.second, {}, {}});
  }
  return rivals;
}

Outcome Compare(const Work& work, Torch* torch, const Arguments& arguments) {
  Outcome outcome;
  outcome.work = work.name;
  if (torch != nullptr) outcome.rivals = ChooseRivals(work, *torch, arguments.seconds);
  Trainer trainer(work, FindDevice(arguments.device).value());
  trainer.Measure(0.3, arguments.cpu_time);
  for (int i = 0; i < arguments.repeats; ++i) {
    outcome.kumo.push_back(trainer.Measure(arguments.seconds, arguments.cpu_time));
    for (Rival& rival : outcome.rivals) {
      const double speed = torch->Measure(work.name, rival.setting, arguments.seconds);
      rival.speeds.push_back(speed);
      if (speed > 0) rival.ratios.push_back(outcome.kumo.back() / speed);
    }
  }
  return outcome;
}

std::string InWords(const std::vector<double>& speeds) {
  const Spread spread = SpreadOf(speeds);
  char text[64];
  std::snprintf(text, sizeof(text), "%.4g (%.4g - %.4g)", spread.median, spread.low, spread.high);
  return text;
}

std::string InJson(const std::vector<double>& speeds) {
  const Spread spread = SpreadOf(speeds);
  char text[64];
  std::snprintf(text, sizeof(text), "[%.5g, %.5g, %.5g]", spread.low, spread.median, spread.high);
  return text;
}

void Print(const std::vector<Outcome>& outcomes, const std::string& torch_version,
           const Arguments& arguments) {
  std::printf("samples/s on %s, one host thread each, by %s, median (lowest - highest)\n",
              arguments.device.c_str(), arguments.cpu_time ? "CPU time" : "wall time");
  std::printf("%-9s %-28s %-28s %-6s %s\n", "work", "kumo", "pytorch", "ratio",
              "pytorch's setting");
  std::string json;
  for (const Outcome& o : outcomes) {
    json += std::string(json.empty() ? "" : ", ") + "{\"work\": \"" + o.work +
            "\", \"kumo\": " + InJson(o.kumo) + ", \"torch\": [";
    if (o.rivals.empty()) std::printf("%-9s %-28s -\n", o.work.c_str(), InWords(o.kumo).c_str());
    for (const Rival& rival : o.rivals) {
      const Spread ratio = SpreadOf(rival.ratios);
      std::printf("%-9s %-28s %-28s %-6.2f %s\n", o.work.c_str(), InWords(o.kumo).c_str(),
                  InWords(rival.speeds).c_str(), ratio.median, rival.setting.c_str());
      char numbers[64];
      std::snprintf(numbers, sizeof(numbers), "\"ratio\": %.3f", ratio.median);
      json += std::string(&rival == &o.rivals.front() ? "" : ", ") + "{\"setting\": \"" +
              rival.setting + "\", \"speed\": " + InJson(rival.speeds) + ", " + numbers + "}";
    }
    json += "]}";
  }
  std::printf(
      "{\"benchmark\": \"train_speed\", \"machine\": \"%s\", \"commit\": \"%s\", "
      "\"device\": \"%s\", \"instruction_set\": \"%s\", \"torch\": \"%s\", \"time\": \"%s\", "
      "\"results\": [%s]}\n",
      Machine().c_str(), kCommit.data(), arguments.device.c_str(),
      arguments.instruction_set.c_str(), torch_version.c_str(), arguments.cpu_time ? "cpu" : "wall",
      json.c_str());
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--kumo-only") {
      arguments.kumo_only = true;
      continue;
    }
    if (key == "--cpu-time") {
      arguments.cpu_time = true;
      continue;
    }
    if (key == "--layers") {
      arguments.layers = true;
      continue;
    }
    if (i + 1 < argc && key == "--work") {
      arguments.work = argv[++i];
    } else if (i + 1 < argc && key == "--device") {
      arguments.device = argv[++i];
    } else if (i + 1 < argc && key == "--batch") {
      arguments.batch = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && key == "--precision") {
      arguments.precision = argv[++i];
    } else if (i + 1 < argc && key == "--instruction-set") {
      arguments.instruction_set = argv[++i];
    } else if (i + 1 < argc && key == "--repeats") {
      arguments.repeats = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && key == "--seconds") {
      arguments.seconds = std::atof(argv[++i]);
    } else {
      std::cerr << "usage: train_speed [--work "
                   "lenet,mlp,convnet,resnet20,resnet50,unet,gpt,resnet] [--device "
                   "cpu|cuda]\n"
                   "                   [--batch N] [--precision fp32|bf16|fp16]\n"
                   "                   [--instruction-set auto|x86-64-v2|x86-64-v3|x86-64-v4]\n"
                   "                   [--repeats N] [--seconds S] [--kumo-only] [--cpu-time] "
                   "[--layers]\n";
      std::exit(64);
    }
  }
  if (!FindDevice(arguments.device) ||
      (!arguments.precision.empty() && !FindChoice<Precision>(arguments.precision)) ||
      !FindChoice<InstructionSet>(arguments.instruction_set)) {
    std::cerr << "train_speed: unknown --device, --precision or --instruction-set\n";
    std::exit(64);
  }
  return arguments;
}

// The work of --work with the other arguments applied.
std::vector<Work> WorkOf(const Arguments& arguments) {
  std::vector<Work> chosen;
  for (Work work : AllWork()) {
    if (("," + arguments.work + ",").find("," + std::string(work.name) + ",") ==
        std::string::npos) {
      continue;
    }
    if (arguments.batch > 0) work.batch = arguments.batch;
    if (!arguments.precision.empty()) {
      work.precision = FindChoice<Precision>(arguments.precision).value();
    }
    work.instruction_set = FindChoice<InstructionSet>(arguments.instruction_set).value();
    chosen.push_back(std::move(work));
  }
  return chosen;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  const std::vector<Work> chosen = WorkOf(arguments);
  if (chosen.empty()) {
    std::cerr << "train_speed: --work " << arguments.work << " names no work\n";
    return 64;
  }
  if (arguments.layers) {
    if (arguments.device != "cpu") {
      std::cerr << "train_speed: --layers times the CPU's layers: a GPU's are queued\n";
      return 64;
    }
    for (const Work& work : chosen) PrintLayerTimes(work, arguments.seconds, arguments.cpu_time);
    return 0;
  }
  std::unique_ptr<Torch> torch;
  if (!arguments.kumo_only) torch = std::make_unique<Torch>(arguments.ForTorch());
  const std::string torch_version = torch ? torch->Version() : "";
  if (torch && torch_version.empty()) {
    std::cout << "PyTorch: none (" << torch->python()
              << " cannot import torch; set KUMO_TORCH_PYTHON): Kumo's figures alone\n";
    torch.reset();
  }
  std::vector<Outcome> outcomes;
  for (const Work& work : chosen) {
    outcomes.push_back(Compare(work, torch.get(), arguments));
  }
  Print(outcomes, torch_version, arguments);
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
