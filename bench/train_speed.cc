// How fast one worker trains, beside PyTorch on the same work: forward, backward and the
// optimiser's step on random minibatches, one thread each, the two taking turns so that both see
// the same machine. PyTorch gets the best of its settings, found first. Prints a table, then JSON.
//
//   KUMO_TORCH_PYTHON=/path/to/python train_speed [--work lenet,mlp] [--repeats 7] [--seconds 1]
//                                                 [--kumo-only] [--cpu-time]
//
// Without a Python that has PyTorch it says so and prints Kumo's figures alone. Pin it to a core
// (taskset -c 0); on a machine that others use too, --cpu-time measures both sides by the CPU time
// that they got instead of the wall's.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "common/optimiser/optimiser.h"
#include "common/rng.h"
#include "models/net.h"

namespace kumo {
namespace {

double Now(bool cpu_time) {
  timespec now{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Work {
  const char* name;
  const char* network;
  int batch;
  OptimiserSettings optimiser;
  float learning_rate;
};

std::vector<Work> AllWork() {
  OptimiserSettings momentum;
  momentum.weight_decay = 1e-4f;
  OptimiserSettings adam;
  adam.type = "adam";
  return {{"lenet", "mnist_lenet", 64, momentum, 0.05f},
          {"mlp", "mnist_mlp", 100, adam, 1e-3f},
          {"convnet", "cifar_convnet", 64, momentum, 0.01f}};
}

// Ends the process: a benchmark has nobody to report to.
template <typename T>
T Take(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::cerr << result.status().message() << '\n';
  std::exit(1);
}
void Take(const Status& status) {
  if (status.ok()) return;
  std::cerr << status.message() << '\n';
  std::exit(1);
}

class Trainer {
 public:
  explicit Trainer(const Work& work)
      : work_(work),
        net_(
            Take(Net::Make(Take(LoadNetwork(std::string(KUMO_ZOO) + "/" + work.network + ".pbtxt")),
                           {work.batch, 1}))),
        layout_(Take(ParameterLayout::Make(net_->tensors()))),
        weights_(layout_.size()),
        gradients_(layout_.size()),
        optimiser_(Take(MakeOptimiser(work.optimiser))) {
    for (int s = 0; s < optimiser_->slots(); ++s) slots_.emplace_back(layout_.size());
    Take(net_->InitialWeights(1, layout_, weights_.span()));
    Take(net_->Bind(layout_, weights_.span(), gradients_.span()));
    Rng rng(1, RngPurpose::kTest);
    // Several minibatches, so that the input is not always in the cache.
    for (int b = 0; b < 8; ++b) {
      std::vector<float> inputs(work.batch * net_->input().size());
      for (float& x : inputs) x = rng.NextUniform();
      std::vector<int32_t> labels(work.batch);
      for (int32_t& label : labels) label = static_cast<int32_t>(rng.NextBelow(10));
      inputs_.push_back(std::move(inputs));
      labels_.push_back(std::move(labels));
    }
  }

  void Step() {
    const size_t i = static_cast<size_t>(step_ % 8);
    Take(net_->TrainStep({work_.batch, inputs_[i], labels_[i]},
                         {1, 0, 0, static_cast<uint64_t>(step_)}));
    ++step_;
    Optimise(Segment::kDecayed, work_.optimiser.weight_decay);
    Optimise(Segment::kUndecayed, 0);
  }

  // Samples per second over about `seconds`.
  double Measure(double seconds, bool cpu_time) {
    const double start = Now(cpu_time);
    int64_t steps = 0;
    while (true) {
      Step();
      ++steps;
      const double elapsed = Now(cpu_time) - start;
      if (elapsed >= seconds && steps >= 5) {
        return static_cast<double>(steps * work_.batch) / elapsed;
      }
    }
  }

 private:
  void Optimise(Segment segment, float weight_decay) {
    const Range range = layout_.segment(segment);
    const auto begin = static_cast<size_t>(range.begin);
    const auto size = static_cast<size_t>(range.size());
    float* slots[Optimiser::kMaxSlots] = {};
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = slots_[s].data() + begin;
    const std::span<float> weights = weights_.span().subspan(begin, size);
    optimiser_->Step({work_.learning_rate, weight_decay, step_}, 1.0f,
                     gradients_.span().subspan(begin, size), weights, weights, slots);
  }

  Work work_;
  std::unique_ptr<Net> net_;
  ParameterLayout layout_;
  Buffer<float> weights_;
  Buffer<float> gradients_;
  std::unique_ptr<Optimiser> optimiser_;
  std::vector<Buffer<float>> slots_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<int32_t>> labels_;
  int64_t step_ = 0;
};

// What a command prints, or "" when it fails.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> buffer;
  size_t n = 0;
  while ((n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) output.append(buffer.data(), n);
  return pclose(pipe) == 0 ? output : "";
}

// PyTorch, one process per measurement.
class Torch {
 public:
  explicit Torch(bool cpu_time) : cpu_time_(cpu_time) {
    const char* python = std::getenv("KUMO_TORCH_PYTHON");
    python_ = python == nullptr ? "python3" : python;
    version_ = OutputOf(python_ + " -c 'import torch; print(torch.__version__, end=\"\")'");
  }
  bool available() const { return !version_.empty(); }
  const std::string& version() const { return version_; }
  const std::string& python() const { return python_; }

  std::vector<std::string> Settings(const std::string& work) const {
    const std::string list = OutputOf(Command(work) + " --list");
    std::vector<std::string> settings;
    size_t end = 0;
    for (size_t begin = list.find('"'); begin != std::string::npos;
         begin = list.find('"', end + 1)) {
      end = list.find('"', begin + 1);
      if (end == std::string::npos) break;
      settings.push_back(list.substr(begin + 1, end - begin - 1));
    }
    return settings;
  }
  double Measure(const std::string& work, const std::string& setting, double seconds) const {
    const std::string output = OutputOf(Command(work) + " --setting " + setting + " --seconds " +
                                        std::to_string(seconds) + (cpu_time_ ? " --cpu-time" : ""));
    const size_t at = output.find(": ");
    return at == std::string::npos ? 0 : std::atof(output.c_str() + at + 2);
  }

 private:
  std::string Command(const std::string& work) const {
    return "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 " + python_ + " " + KUMO_TRAIN_SPEED_PY +
           " --work " + work;
  }
  bool cpu_time_;
  std::string python_;
  std::string version_;
};

struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

std::string Machine() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

struct Outcome {
  std::string work;
  Spread kumo;
  Spread torch;
  double ratio = 0;  // median of the turns' own ratios
  std::string setting;
};

struct Arguments {
  std::string work = "lenet,mlp";
  int repeats = 7;
  double seconds = 1;
  bool kumo_only = false;
  bool cpu_time = false;
};

Outcome Compare(const Work& work, const Torch* torch, const Arguments& arguments) {
  Outcome outcome;
  outcome.work = work.name;
  if (torch != nullptr) {
    // The best of three turns: one unlucky turn must not choose PyTorch a bad setting.
    double best = -1;
    const std::vector<std::string> settings = torch->Settings(work.name);
    for (int turn = 0; turn < 3; ++turn) {
      for (const std::string& setting : settings) {
        const double speed = torch->Measure(work.name, setting, arguments.seconds);
        if (speed > best) outcome.setting = setting;
        best = std::max(best, speed);
      }
    }
  }
  Trainer trainer(work);
  trainer.Measure(0.3, arguments.cpu_time);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int i = 0; i < arguments.repeats; ++i) {
    ours.push_back(trainer.Measure(arguments.seconds, arguments.cpu_time));
    if (torch == nullptr) continue;
    theirs.push_back(torch->Measure(work.name, outcome.setting, arguments.seconds));
    if (theirs.back() > 0) ratios.push_back(ours.back() / theirs.back());
  }
  outcome.kumo = SpreadOf(ours);
  outcome.torch = SpreadOf(theirs);
  outcome.ratio = SpreadOf(ratios).median;
  return outcome;
}

void Print(const std::vector<Outcome>& outcomes, const Torch* torch, bool cpu_time) {
  std::printf("samples/s, one thread each, by %s, median (lowest - highest)\n",
              cpu_time ? "CPU time" : "wall time");
  std::printf("%-9s %-28s %-28s %-6s %s\n", "work", "kumo", "pytorch", "ratio",
              "pytorch's setting");
  for (const Outcome& o : outcomes) {
    char kumo[64];
    char theirs[64];
    std::snprintf(kumo, sizeof(kumo), "%.0f (%.0f - %.0f)", o.kumo.median, o.kumo.low, o.kumo.high);
    std::snprintf(theirs, sizeof(theirs), "%.0f (%.0f - %.0f)", o.torch.median, o.torch.low,
                  o.torch.high);
    std::printf("%-9s %-28s %-28s %-6.2f %s\n", o.work.c_str(), kumo,
                torch == nullptr ? "-" : theirs, o.ratio, o.setting.c_str());
  }
  std::printf(
      "{\"benchmark\": \"train_speed\", \"machine\": \"%s\", \"commit\": \"%s\", "
      "\"torch\": \"%s\", \"time\": \"%s\", \"results\": [",
      Machine().c_str(), KUMO_COMMIT, torch == nullptr ? "" : torch->version().c_str(),
      cpu_time ? "cpu" : "wall");
  const char* separator = "";
  for (const Outcome& o : outcomes) {
    std::printf(
        "%s{\"work\": \"%s\", \"kumo\": [%.0f, %.0f, %.0f], \"torch\": [%.0f, %.0f, "
        "%.0f], \"ratio\": %.3f, \"torch_setting\": \"%s\"}",
        separator, o.work.c_str(), o.kumo.low, o.kumo.median, o.kumo.high, o.torch.low,
        o.torch.median, o.torch.high, o.ratio, o.setting.c_str());
    separator = ", ";
  }
  std::printf("]}\n");
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
    if (i + 1 < argc && key == "--work") {
      arguments.work = argv[++i];
    } else if (i + 1 < argc && key == "--repeats") {
      arguments.repeats = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && key == "--seconds") {
      arguments.seconds = std::atof(argv[++i]);
    } else {
      std::cerr << "usage: train_speed [--work lenet,mlp,convnet] [--repeats N] [--seconds S] "
                   "[--kumo-only] [--cpu-time]\n";
      std::exit(64);
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::unique_ptr<Torch> torch;
  if (!arguments.kumo_only) torch = std::make_unique<Torch>(arguments.cpu_time);
  if (torch && !torch->available()) {
    std::cout << "PyTorch: none (" << torch->python()
              << " cannot import torch; set KUMO_TORCH_PYTHON): Kumo's figures alone\n";
    torch.reset();
  }
  std::vector<Outcome> outcomes;
  for (const Work& work : AllWork()) {
    if (("," + arguments.work + ",").find("," + std::string(work.name) + ",") ==
        std::string::npos) {
      continue;
    }
    outcomes.push_back(Compare(work, torch.get(), arguments));
  }
  Print(outcomes, torch.get(), arguments.cpu_time);
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
