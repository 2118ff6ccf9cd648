// How fast one worker trains, beside PyTorch on the same work: forward, backward and the
// optimiser's step on random minibatches, one thread each, the two taking turns so that both see
// the same machine. PyTorch gets the best of its settings, found first. Prints a table, then JSON.
//
//   KUMO_TORCH_PYTHON=/path/to/python train_speed [--work lenet,mlp] [--repeats 7] [--seconds 1]
//       [--device cpu] [--batch N] [--precision P] [--kumo-only] [--cpu-time]
//
// Work: lenet, mlp, convnet, gpt (nanoGPT's CPU configuration), and resnet: a stack of
// convolutions, batch normalisation and ReLU of ResNet-50's shapes without its shortcuts, in bf16.
// Batch and precision are the work's own unless they are given.
//
// Without a Python that has PyTorch it says so and prints Kumo's figures alone. Pin it to a core
// (taskset -c 0); on a machine that others use too, --cpu-time measures both sides by the CPU time
// that they got instead of the wall's.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/take.h"
#include "common/base/rng.h"
#include "common/job/optimiser/optimiser.h"
#include "models/backend/devices.h"
#include "models/net.h"
#include "models/network.h"

namespace kumo {
namespace {

double Now(bool cpu_time) {
  timespec now{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Work {
  const char* name;
  model::Network network;
  int batch;
  OptimiserSettings optimiser;
  float learning_rate;
  std::string precision = "fp32";
};

model::Network Zoo(const std::string& name) {
  return Take(LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt"));
}

// He et al. 2015, Deep Residual Learning, table 1, the column of 50 layers: four stages of blocks
// of 1x1, 3x3 and 1x1 convolutions; a stage's first 3x3 halves the plane but for the first stage's.
model::Network ResnetStack() {
  model::Network network;
  network.set_name("resnet_stack");
  model::Input* image = network.add_input();
  image->set_channels(3);
  image->set_height(224);
  image->set_width(224);
  const auto add = [&network](const std::string& kind) {
    model::Layer* layer = network.add_layers();
    layer->set_name(kind + std::to_string(network.layers_size()));
    return layer;
  };
  const auto convolve = [&add](int outputs, int kernel, int stride) {
    model::Convolution* convolution = add("conv")->mutable_convolution();
    convolution->set_outputs(outputs);
    convolution->set_kernel(kernel);
    convolution->set_stride(stride);
    convolution->set_pad(kernel / 2);
    convolution->set_no_bias(true);
    convolution->mutable_weight()->mutable_he_normal();
    add("norm")->mutable_batch_normalisation();
    add("relu")->mutable_relu();
  };
  convolve(64, 7, 2);
  model::Pooling* pool = add("pool")->mutable_max_pooling();
  pool->set_kernel(3);
  pool->set_stride(2);
  pool->set_pad(1);
  const std::array<int, 4> blocks = {3, 4, 6, 3};
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int width = 64 << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      convolve(width, 1, 1);
      convolve(width, 3, stage > 0 && block == 0 ? 2 : 1);
      convolve(4 * width, 1, 1);
    }
  }
  add("pool")->mutable_average_pooling()->set_kernel(7);
  add("flatten")->mutable_flatten();
  add("fc")->mutable_fully_connected()->set_outputs(1000);
  add("loss")->mutable_softmax_cross_entropy();
  return network;
}

std::vector<Work> AllWork() {
  OptimiserSettings momentum;
  momentum.weight_decay = 1e-4f;
  OptimiserSettings adam;
  adam.type = "adam";
  OptimiserSettings adamw;
  adamw.type = "adamw";
  adamw.weight_decay = 0.01f;
  return {{"lenet", Zoo("mnist_lenet"), 64, momentum, 0.05f},
          {"mlp", Zoo("mnist_mlp"), 100, adam, 1e-3f},
          {"convnet", Zoo("cifar_convnet"), 64, momentum, 0.01f},
          {"gpt", Zoo("char_gpt_small"), 12, adamw, 1e-3f},
          {"resnet", ResnetStack(), 256, momentum, 0.01f, "bf16"}};
}

class Trainer {
 public:
  Trainer(const Work& work, const std::string& device)
      : work_(work),
        backend_(Take(MakeBackend({.device = device, .precision = work.precision}))),
        net_(Take(Net::Make(work.network, work.batch, backend_.get()))),
        layout_(Take(ParameterLayout::Make(net_->tensors()))),
        weights_(*backend_, layout_.size(), "weights"),
        gradients_(*backend_, layout_.size(), "gradients"),
        optimiser_(Take(MakeOptimiser(work.optimiser))) {
    for (int s = 0; s < optimiser_->slots(); ++s) {
      slots_.emplace_back(*backend_, layout_.size(), "the optimiser's state");
    }
    std::vector<float> start(static_cast<size_t>(layout_.size()));
    Take(net_->InitialWeights(1, layout_, start));
    backend_->Write(start.data(), start.size() * sizeof(float), weights_.data());
    Take(net_->Bind(layout_, weights_.data(), gradients_.data()));
    MakeData();
  }

  void Step() {
    Load(static_cast<size_t>(step_++ % 8));
    StepParameters step;
    step.streams = {1, 0, 0, static_cast<uint64_t>(step_)};
    step.optimiser = optimiser_.get();
    step.decayed = {work_.learning_rate, work_.optimiser.weight_decay, step_};
    step.undecayed = {work_.learning_rate, 0, step_};
    backend_->SetStep(step);
    backend_->Repeat({work_.batch, true, nullptr}, [&] {
      net_->Train();
      backend_->MeasureGradients(gradients_.data(), layout_.segment(Segment::kUndecayed).end);
      Optimise(Segment::kDecayed);
      Optimise(Segment::kUndecayed);
    });
  }

  // Samples per second over about `seconds`.
  double Measure(double seconds, bool cpu_time) {
    const double start = Now(cpu_time);
    int64_t steps = 0;
    while (true) {
      Step();
      ++steps;
      if (Now(cpu_time) - start >= seconds && steps >= 5) {
        Take(net_->TakeSums());  // waits for what is queued
        return static_cast<double>(steps * work_.batch) / (Now(cpu_time) - start);
      }
    }
  }

 private:
  // As a worker's minibatches are; PyTorch's lie on the device ready, as numbers.
  void Load(size_t i) {
    const std::span<const std::byte> fields[] = {minibatches_[i][0], minibatches_[i][1]};
    Take(net_->Load({work_.batch, fields}));
  }

  void MakeData() {
    const Fields fields = net_->takes();
    Take(net_->Connect(fields, {.scale = 1 / 255.0f}));
    Rng rng(1, RngPurpose::kTest);
    // Several minibatches, so that the input is not always in the cache.
    for (std::array<std::vector<std::byte>, 2>& minibatch : minibatches_) {
      for (size_t f = 0; f < minibatch.size(); ++f) {
        minibatch[f] = Draw(fields[f], f == 0 ? 256 : 10, &rng);
      }
    }
  }
  // Whole numbers below `below`, of each sample.
  std::vector<std::byte> Draw(const Field& field, uint64_t below, Rng* rng) const {
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < work_.batch * field.numbers(); ++i) {
      if (field.type == NumberType::kUint8) {
        bytes.push_back(static_cast<std::byte>(rng->NextBelow(below)));
        continue;
      }
      const auto most = std::min<uint64_t>(below, static_cast<uint64_t>(net_->classes()));
      const auto number = static_cast<int32_t>(rng->NextBelow(most));
      const auto four = std::as_bytes(std::span(&number, 1));
      bytes.insert(bytes.end(), four.begin(), four.end());
    }
    return bytes;
  }

  void Optimise(Segment segment) {
    const Range range = layout_.segment(segment);
    float* slots[Optimiser::kMaxSlots] = {};
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = slots_[s].data() + range.begin;
    backend_->OptimiserStep(segment, gradients_.data() + range.begin, range.size(),
                            weights_.data() + range.begin, slots);
  }

  Work work_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Net> net_;
  ParameterLayout layout_;
  DeviceArray<float> weights_;
  DeviceArray<float> gradients_;
  std::unique_ptr<Optimiser> optimiser_;
  std::vector<DeviceArray<float>> slots_;
  std::array<std::array<std::vector<std::byte>, 2>, 8> minibatches_;  // inputs and labels
  int64_t step_ = 0;
};

struct Arguments {
  std::string work = "lenet,mlp";
  std::string device = "cpu";
  int batch = 0;          // 0: the work's own
  std::string precision;  // empty: the work's own
  int repeats = 7;
  double seconds = 1;
  bool kumo_only = false;
  bool cpu_time = false;
};

// PyTorch: one process, which is asked line by line (train_speed.py --serve). While Kumo's turn
// lasts it waits for the next line.
class Torch {
 public:
  explicit Torch(const Arguments& arguments) {
    const char* python = std::getenv("KUMO_TORCH_PYTHON");
    python_ = python == nullptr ? "python3" : python;
    const std::string command = "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 exec " + python_ + " " +
                                KUMO_TRAIN_SPEED_PY + " --serve --device " + arguments.device +
                                " --batch " + std::to_string(arguments.batch) +
                                (arguments.precision.empty() ? "" : " --precision ") +
                                arguments.precision + (arguments.cpu_time ? " --cpu-time" : "");
    std::signal(SIGPIPE, SIG_IGN);  // one that has died shows as an end of its answers
    int questions[2];
    int answers[2];
    if (pipe2(questions, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(questions[0], STDIN_FILENO);
      dup2(answers[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(questions[0]);
    close(answers[1]);
    questions_ = fdopen(questions[1], "w");
    answers_ = fdopen(answers[0], "r");
  }
  ~Torch() {
    if (questions_ != nullptr) fclose(questions_);  // the end of its input ends it
    if (answers_ != nullptr) fclose(answers_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Torch(const Torch&) = delete;
  Torch& operator=(const Torch&) = delete;

  // Empty where the Python has no PyTorch.
  std::string Version() { return Field(Ask("version"), "torch"); }
  const std::string& python() const { return python_; }

  std::vector<std::string> Settings(const std::string& work) {
    const std::string list = Ask(work + " list");
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
  // Samples per second; 0, and a line that says why, where the setting does not work.
  double Measure(const std::string& work, const std::string& setting, double seconds) {
    const std::string answer = Ask(work + " " + setting + " " + std::to_string(seconds));
    const std::string key = "\"samples_per_s\": ";
    const size_t at = answer.find(key);
    if (at != std::string::npos) return std::atof(answer.c_str() + at + key.size());
    std::cerr << "PyTorch, " << work << ", " << setting << ": "
              << (answer.empty() ? "no answer\n" : answer);
    return 0;
  }

 private:
  std::string Ask(const std::string& question) {
    if (questions_ == nullptr || answers_ == nullptr) return "";
    std::fputs((question + "\n").c_str(), questions_);
    std::fflush(questions_);
    std::array<char, 4096> line;
    return fgets(line.data(), line.size(), answers_) == nullptr ? "" : line.data();
  }
  static std::string Field(const std::string& json, const std::string& name) {
    const std::string key = "\"" + name + "\": \"";
    const size_t at = json.find(key);
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size();
    return json.substr(begin, json.find('"', begin) - begin);
  }

  std::string python_;
  pid_t child_ = -1;
  FILE* questions_ = nullptr;
  FILE* answers_ = nullptr;
};

// PyTorch in one of its modes: eager, or a recorded graph.
struct Rival {
  std::string setting;  // the best one of the mode; begins with the mode's name
  std::vector<double> speeds;
  std::vector<double> ratios;  // Kumo's speed of the same turn to it
};

struct Outcome {
  std::string work;
  std::vector<double> kumo;
  std::vector<Rival> rivals;
};

// The best setting of each mode, of three turns: one unlucky turn must not choose PyTorch a bad
// one.
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
  Trainer trainer(work, arguments.device);
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
  std::snprintf(text, sizeof(text), "%.0f (%.0f - %.0f)", spread.median, spread.low, spread.high);
  return text;
}

std::string InJson(const std::vector<double>& speeds) {
  const Spread spread = SpreadOf(speeds);
  char text[64];
  std::snprintf(text, sizeof(text), "[%.0f, %.0f, %.0f]", spread.low, spread.median, spread.high);
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
      "\"device\": \"%s\", \"torch\": \"%s\", \"time\": \"%s\", \"results\": [%s]}\n",
      Processor().c_str(), KUMO_COMMIT, arguments.device.c_str(), torch_version.c_str(),
      arguments.cpu_time ? "cpu" : "wall", json.c_str());
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
    } else if (i + 1 < argc && key == "--device") {
      arguments.device = argv[++i];
    } else if (i + 1 < argc && key == "--batch") {
      arguments.batch = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && key == "--precision") {
      arguments.precision = argv[++i];
    } else if (i + 1 < argc && key == "--repeats") {
      arguments.repeats = std::max(1, std::atoi(argv[++i]));
    } else if (i + 1 < argc && key == "--seconds") {
      arguments.seconds = std::atof(argv[++i]);
    } else {
      std::cerr << "usage: train_speed [--work lenet,mlp,convnet,resnet] [--device cpu|cuda]\n"
                   "                   [--batch N] [--precision fp32|bf16|fp16] [--repeats N]\n"
                   "                   [--seconds S] [--kumo-only] [--cpu-time]\n";
      std::exit(64);
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  std::unique_ptr<Torch> torch;
  if (!arguments.kumo_only) torch = std::make_unique<Torch>(arguments);
  const std::string torch_version = torch ? torch->Version() : "";
  if (torch && torch_version.empty()) {
    std::cout << "PyTorch: none (" << torch->python()
              << " cannot import torch; set KUMO_TORCH_PYTHON): Kumo's figures alone\n";
    torch.reset();
  }
  std::vector<Outcome> outcomes;
  for (Work work : AllWork()) {
    if (("," + arguments.work + ",").find("," + std::string(work.name) + ",") ==
        std::string::npos) {
      continue;
    }
    if (arguments.batch > 0) work.batch = arguments.batch;
    if (!arguments.precision.empty()) work.precision = arguments.precision;
    outcomes.push_back(Compare(work, torch.get(), arguments));
  }
  Print(outcomes, torch_version, arguments);
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
