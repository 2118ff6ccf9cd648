// replayed_worker: a worker whose computation is replayed by sleeping (bench/grid.py). A step of a
// block takes a given time and needs no processor. Everything else is a worker's: messages, codecs,
// carried state, and weights of the given number of parameters.
//
// A block moves the weights by the same random vector each time, one of its partition's own: codecs
// find numbers of all sizes. Nothing is learnt, so the weights drift away evenly. Passes over the
// weights that belong to the steps are part of the time that is slept.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process/logging.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "common/base/process/signals.h"
#include "common/base/rng.h"
#include "common/settings/command_line.h"
#include "common/settings/parser.h"
#include "models/devices/devices.h"
#include "worker/session/training_engine.h"
#include "worker/training/block_weights.h"
#include "worker/training/contribution.h"
#include "worker/training/partition_arrays.h"
#include "worker/worker_service.h"

namespace kumo {
namespace {

constexpr int64_t kTensor = 1 << 20;                 // parameters of one tensor
constexpr int64_t kTrainSamples = int64_t{1} << 40;  // of the only epoch: it does not end
constexpr float kMovement = 1e-4f;                   // standard deviation of a block's movement
constexpr auto kLongestSleep = std::chrono::milliseconds(50);  // until a cancellation is seen

struct Arguments {
  std::string file;
  std::vector<std::string> sets;
  std::string name;
  int64_t parameters = 30'800'000;
  double step_ms = 25;
};

Result<JobSpec> SpecOf(const Arguments& arguments, const Experiment& experiment) {
  JobSpec spec;
  std::vector<TensorSpec> tensors;
  for (int64_t begin = 0; begin < arguments.parameters; begin += kTensor) {
    tensors.push_back({.name = "replayed" + std::to_string(tensors.size()) + ".weight",
                       .shape = {std::min(kTensor, arguments.parameters - begin)}});
  }
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(std::move(tensors)));
  KUMO_ASSIGN_OR_RETURN(spec.metrics, MetricList::Make({{.name = "loss"}}));
  spec.train_samples = kTrainSamples;
  spec.optimiser_slots = RoundPolicy(experiment).carried().optimiser_slots;
  return spec;
}

class ReplayedEngine : public TrainingEngine {
 public:
  static Result<std::unique_ptr<ReplayedEngine>> Make(const Arguments& arguments,
                                                      const Experiment& experiment) {
    KUMO_ASSIGN_OR_RETURN(JobSpec spec, SpecOf(arguments, experiment));
    KUMO_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, MakeBackend(experiment.network));
    return std::unique_ptr<ReplayedEngine>(
        new ReplayedEngine(arguments, experiment, std::move(spec), std::move(backend)));
  }

  const JobSpec& spec() const override { return spec_; }

  Status Attach(const JobShape* shape) override {
    shape_ = shape;
    installed_.Attach(&shape->map);
    unmoved_ = Vector("the start of a block");
    return backend_->Wait();
  }

  Result<InitialWeights> MakeInitialWeights() override {
    const Buffer<float> weights = Random(/*stream=*/0);
    InitialWeights initial;
    for (const Chunk& chunk : shape_->map.chunks()) {
      auto copy = std::make_shared<Buffer<float>>(static_cast<size_t>(chunk.range.size()));
      std::copy_n(weights.data() + chunk.range.begin, chunk.range.size(), copy->data());
      initial.chunks.push_back({copy, std::as_bytes(std::as_const(*copy).span())});
    }
    return initial;
  }

  void Install(const InstallAction& install) override {
    if (install.vector != wire::START) return;  // nothing is evaluated
    installed_.Install(install);
  }

  void Adopt(const AdoptAction& adopt) override {
    carried_.Adopt(adopt, shape_->map);
    const Buffer<float> movement = Random(1 + static_cast<uint64_t>(adopt.partition));
    DeviceArray<float> array = Vector("the movement of a block");
    backend_->Write(movement.data(), movement.size() * sizeof(float), array.data());
    movements_.insert_or_assign(adopt.partition, std::move(array));
  }

  Result<TrainedBlock> Train(const TrainAction& train, const OnCoded&) override {
    const auto begin = Now();
    TrainedBlock block;
    PartitionArrays::Arrays& carried = carried_.Of(train.partition);
    const int64_t samples = shape_->plan.MainSamples(train.round, train.partition).size();
    const float* const movement = movements_.at(train.partition).data();
    contribution_.emplace(
        *shape_, train.round, train.partition,
        Contribution::Vectors{unmoved_.data(), movement, movement, carried.residual.data()},
        backend_.get());
    KUMO_RETURN_IF_ERROR(Sleep(begin, samples));
    block.metrics = {.samples = samples, .sums = {static_cast<double>(samples)}};
    block.times.compute_ms = Milliseconds(Now() - begin);
    return block;
  }

  Status Code(const TrainAction& train, TrainedBlock* block) override {
    const auto begin = Now();
    KUMO_RETURN_IF_ERROR(contribution_->Finish());
    if (contribution_->first_bad()) {
      return OutOfRange("the replayed weights left the codec's range");
    }
    block->contributions = contribution_->payloads();
    contribution_.reset();
    if (train.save_state) {
      KUMO_ASSIGN_OR_RETURN(block->carried,
                            carried_.Copies(carried_.Of(train.partition), shape_->map));
    }
    if (!shape_->TrainsAhead(train.round.round, train.partition)) {
      block->times.coding_ms = Milliseconds(Now() - begin);
    }
    return OkStatus();
  }

  Result<TrainedAhead> StepAhead(const RoundPlan& round, int partition) override {
    const auto begin = Now();
    TrainedAhead ahead;
    ahead.samples = shape_->plan.AheadSamples(round, partition).size();
    KUMO_RETURN_IF_ERROR(Sleep(begin, ahead.samples));
    ahead.compute_ms = Milliseconds(Now() - begin);
    return ahead;
  }

  Status KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead) override {
    if (!train.save_state) return OkStatus();
    KUMO_ASSIGN_OR_RETURN(ahead->carried,
                          carried_.Copies(carried_.Of(train.partition), shape_->map));
    return OkStatus();
  }

  bool codes_beside_steps() const override { return backend_->codes_beside_steps(); }

  Result<Evaluation> Evaluate(const EvaluateAction&) override { return Evaluation(); }

  void Drop(int partition) override {
    carried_.Drop(partition);
    movements_.erase(partition);
  }

  void Cancel() override { cancelled_ = true; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static Time Now() { return std::chrono::steady_clock::now(); }
  static double Milliseconds(Time::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  ReplayedEngine(const Arguments& arguments, const Experiment& experiment, JobSpec spec,
                 std::unique_ptr<Backend> backend)
      : step_ms_(arguments.step_ms),
        minibatch_(experiment.sync.minibatch),
        spec_(std::move(spec)),
        backend_(std::move(backend)),
        installed_(&spec_.layout, backend_.get()),
        carried_(RoundPolicy(experiment).carried(), &spec_.layout, backend_.get()) {}

  DeviceArray<float> Vector(const std::string& what) {
    return {*backend_, spec_.layout.size(), what};
  }
  Buffer<float> Random(uint64_t stream) const {
    Buffer<float> numbers(static_cast<size_t>(spec_.layout.size()));
    Rng rng(1, RngPurpose::kTest, stream);
    for (float& number : numbers.span()) number = kMovement * rng.NextNormal();
    return numbers;
  }

  // Sleeps until the steps of `samples` that began at `begin` would be over.
  Status Sleep(Time begin, int64_t samples) {
    KUMO_RETURN_IF_ERROR(backend_->Wait());
    const auto steps = static_cast<double>((samples + minibatch_ - 1) / minibatch_);
    const Time end = begin + std::chrono::duration_cast<Time::duration>(
                                 std::chrono::duration<double, std::milli>(steps * step_ms_));
    for (Time now = Now(); now < end; now = Now()) {
      if (cancelled_) return Aborted("cancelled");
      std::this_thread::sleep_for(std::min<Time::duration>(end - now, kLongestSleep));
    }
    return OkStatus();
  }

  const double step_ms_;
  const int64_t minibatch_;
  const JobSpec spec_;
  const std::unique_ptr<Backend> backend_;  // outlives the arrays
  const JobShape* shape_ = nullptr;
  InstalledWeights installed_;
  DeviceArray<float> unmoved_;
  std::map<int, DeviceArray<float>> movements_;  // by partition
  PartitionArrays carried_;
  std::optional<Contribution> contribution_;  // of the block that is trained and coded
  std::atomic<bool> cancelled_{false};
};

Status Run(const Arguments& arguments, const char* program) {
  KUMO_ASSIGN_OR_RETURN(const Experiment experiment,
                        ParseExperiment(arguments.file, arguments.sets, VariablesOf(environ)));
  RunningClock clock;
  StopSignals signals;
  LogSettings log;
  log.program = program;
  log.directory = JoinPath(experiment.output.directory, "logs");
  log.role = "worker";
  log.rank = arguments.name;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Logging> logging, Logging::Start(log));
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ReplayedEngine> engine,
                        ReplayedEngine::Make(arguments, experiment));
  SessionSettings settings;
  settings.experiment = experiment;
  settings.identity = IdentityOf(experiment);
  settings.spec = engine->spec();
  settings.name = arguments.name;
  settings.device = "replayed computation";
  settings.process = ThisProcess(HostName());
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<WorkerService> service,
                        WorkerService::Make(settings, &clock, engine.get(), &signals));
  return service->Run();
}

int Main(const char* program, const std::vector<std::string>& args) {
  TuneMallocForLargeMessages();
  Arguments arguments;
  CommandLine line("replayed_worker",
                   "Takes part in a job as a worker whose computation is replayed by sleeping.");
  line.AddPositional("FILE", "Experiment file; its network and data are not read", true,
                     [&](const std::string& text) { arguments.file = text; });
  line.AddSettings(&arguments.sets);
  line.AddOption("name", "NAME", {.not_empty = true}, "Name of this worker", &arguments.name,
                 "none: it must be given");
  line.AddOption("parameters", "N", {.min = 1, .max = 1e10}, "Number of parameters",
                 &arguments.parameters);
  line.AddOption("step-ms", "MS", {.min = 0, .max = 1e6}, "Time of a step, in milliseconds",
                 &arguments.step_ms);
  Status status = line.Parse(args);
  if (line.help_asked() && status.ok()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  if (status.ok() && arguments.name.empty()) status = InvalidArgument("--name NAME is missing");
  if (status.ok()) status = Run(arguments, program);
  if (status.ok()) return 0;
  std::fprintf(stderr, "replayed_worker: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  kumo::RaiseSoftLimits();
  return kumo::Main(argv[0], {argv + 1, argv + argc});
}
