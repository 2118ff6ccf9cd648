// First steps: an experiment's first minibatches on one worker without a job, for comparison with
// PyTorch by bench/first_losses.py. For each step it writes to a new folder the weights before the
// step, the minibatch as the network gets it and the gradients; and run.json with the losses and
// the description of the run.
//
//   first_steps EXPERIMENT DIR STEPS [SECTION.KEY=VALUE ...]
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "bench/objects.h"
#include "bench/take.h"
#include "common/settings/parser.h"
#include "data/batch_stream.h"
#include "models/network.h"
#include "models/weight_step.h"
#include "worker/training/opened_job.h"

namespace kumo {
namespace {

class Run {
 public:
  Run(const Experiment& experiment, const std::filesystem::path& folder)
      : experiment_(experiment),
        folder_(folder),
        job_(Take(OpenJob(experiment))),
        layout_(job_.spec.layout),
        stream_(&job_.datasets.trained(), {.seed = experiment.job.seed,
                                           .minibatch = experiment.sync.minibatch,
                                           .transforms = job_.datasets.transforms}),
        weights_(*job_.backend, layout_.size(), "weights"),
        gradients_(*job_.backend, layout_.size(), "gradients"),
        slots_(*job_.backend, job_.optimiser->slots() * layout_.size(), "the optimiser's state"),
        optimiser_step_(layout_, job_.net->matrices(), job_.optimiser->traits(),
                        job_.backend.get()),
        weights_file_(folder / "weights.f32", std::ios::binary),
        gradients_file_(folder / "gradients.f32", std::ios::binary),
        inputs_(folder / "inputs", std::ios::binary),
        labels_(folder / "labels.i32", std::ios::binary),
        numbers_(folder / "labels.f32", std::ios::binary) {
    std::vector<float> start(static_cast<size_t>(layout_.size()));
    Take(job_.net->InitialWeights(experiment.job.seed, layout_, start));
    job_.backend->Write(start.data(), start.size() * sizeof(float), weights_.data());
    Take(job_.net->Bind(layout_, weights_.data(), gradients_.data()));
  }

  void Do(int steps) {
    std::ofstream json(folder_ / "run.json");
    json << std::setprecision(17) << "{\"steps\": [";
    stream_.Start(0, {0, job_.datasets.train->size()});
    for (int step = 1; step <= steps; ++step) {
      const Minibatch batch = Take(stream_.Next());
      if (batch.size == 0) Fail("the training set has fewer minibatches");
      Record(batch);
      Record(weights_, weights_file_);
      const StepInfo info = Step(batch, step);
      const MetricList& metrics = job_.net->metrics();
      const MetricSums sums = {batch.size, Take(job_.net->TakeSums())};
      // The trained loss: total_loss, if there are several.
      const Metric& trained = *TrainedLoss(metrics.metrics());
      const double loss = MetricList::FigureOf(trained, sums).value();
      Record(gradients_, gradients_file_);
      json << (step > 1 ? ",\n" : "\n") << "{\"loss\": " << loss << ", \"samples\": " << batch.size
           << ", \"rate\": " << info.learning_rate
           << ", \"momentum\": " << info.momentum.value_or(experiment_.optimiser.momentum);
      if (HasObjects(job_.datasets.fields())) {
        json << ", \"objects\": ";
        WriteObjects(job_.datasets.fields(), batch, json);
      }
      json << "}";
    }
    json << "],\n";
    Describe(json);
    for (std::ofstream* file :
         {&json, &weights_file_, &gradients_file_, &inputs_, &labels_, &numbers_}) {
      if (!file->flush()) Fail("cannot write to " + folder_.string());
    }
  }

 private:
  StepInfo Step(const Minibatch& batch, int number) {
    Take(job_.net->Load(batch.samples()));
    const int64_t position = int64_t{number - 1} * experiment_.sync.minibatch;
    StepParameters step;
    step.streams = {experiment_.job.seed, 0, 0, static_cast<uint64_t>(number)};
    step.optimiser = job_.optimiser.get();
    const int samples = static_cast<int>(batch.size);
    step.undecayed.learning_rate = job_.schedule->RateAt(position, samples);
    step.undecayed.momentum = job_.schedule->MomentumAt(position, samples);
    step.undecayed.step = number;
    step.decayed = step.undecayed;
    step.decayed.weight_decay = experiment_.optimiser.weight_decay;
    step.clip_norm = static_cast<float>(experiment_.optimiser.clip_norm);
    job_.backend->SetStep(step);
    job_.backend->Repeat({samples, true, nullptr}, [&] {
      job_.net->Train();
      job_.backend->MeasureGradients(gradients_.data(), layout_.segment(Segment::kUndecayed).end);
      optimiser_step_.Queue(gradients_.data(), weights_.data(), slots_.data());
    });
    return step.undecayed;
  }

  void Record(const DeviceArray<float>& vector, std::ofstream& file) {
    std::vector<float> numbers(static_cast<size_t>(layout_.size()));
    Take(job_.backend->Read(vector.data(), numbers.size() * sizeof(float), numbers.data()));
    Write(numbers, file);
  }

  static void Write(const std::vector<float>& numbers, std::ofstream& file) {
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  }

  // Token numbers unchanged, pixels by common/job/pixels.h.
  void Record(const Minibatch& batch) {
    const Fields fields = job_.datasets.fields();
    if (const int place = PlaceOfLabels(fields); place >= 0)
      RecordLabels(batch.fields[place], fields[place]);
    if (const int tokens = FindField(fields, kTokensField); tokens >= 0) {
      const auto numbers = batch.fields[tokens];
      inputs_.write(reinterpret_cast<const char*>(numbers.data()), std::ssize(numbers));
      return;
    }
    const int place = FindField(fields, kImageField);
    const auto image = batch.fields[place];
    const int64_t size = std::ssize(image) / batch.size;
    const int64_t plane = size / fields[place].extents[0];
    const PixelFormula& formula = job_.datasets.pixels[place];
    std::vector<float> inputs;
    for (int64_t i = 0; i < std::ssize(image); ++i) {
      const float mean = formula.mean.empty() ? 0 : formula.mean[i % size];
      inputs.push_back(formula.scale_of(i % size / plane) *
                       (static_cast<float>(std::to_integer<uint8_t>(image[i])) - mean));
    }
    Write(inputs, inputs_);
  }

  // The targets of the losses, if they are one field that is no list; else -1.
  int PlaceOfLabels(const Fields& fields) const {
    int place = -1;
    for (const Field& taken : job_.net->takes()) {
      const int found = FindField(fields, taken.name);
      if (taken.type == NumberType::kUint8 || taken.name == kTokensField || taken.list) continue;
      if (place >= 0 && found != place) Fail("the losses compare with several fields");
      place = found;
    }
    return place;
  }

  // Classes as int32, numbers as float32.
  void RecordLabels(std::span<const std::byte> label, const Field& field) {
    if (field.type == NumberType::kFloat32) {
      numbers_.write(reinterpret_cast<const char*>(label.data()), std::ssize(label));
    } else if (field.type == NumberType::kInt32) {
      labels_.write(reinterpret_cast<const char*>(label.data()), std::ssize(label));
    } else {
      for (const std::byte one : label) {
        const auto number = std::to_integer<int32_t>(one);
        labels_.write(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
  }

  static const Metric* TrainedLoss(std::span<const Metric> metrics) {
    const auto total = std::ranges::find(metrics, "total_loss", &Metric::name);
    return total == metrics.end() ? &metrics.front() : &*total;
  }

  void Describe(std::ofstream& json) {
    std::string network;
    const auto written =
        google::protobuf::util::MessageToJsonString(Take(NetworkOf(experiment_)), &network);
    if (!written.ok()) Fail("the network cannot be written as JSON");
    json << "\"numbers\": " << layout_.size() << ",\n\"network\": " << network
         << ",\n\"optimiser\": {\"type\": \"" << WordOf(experiment_.optimiser.type)
         << "\", \"unit_gain\": " << (experiment_.optimiser.unit_gain ? "true" : "false")
         << ", \"weight_decay\": " << experiment_.optimiser.weight_decay
         << ", \"beta1\": " << experiment_.optimiser.beta1
         << ", \"beta2\": " << experiment_.optimiser.beta2
         << ", \"epsilon\": " << experiment_.optimiser.epsilon
         << ", \"clip_norm\": " << experiment_.optimiser.clip_norm << "},\n\"tensors\": [";
    for (int i = 0; i < std::ssize(layout_.tensors()); ++i) {
      const TensorSpec& tensor = layout_.tensors()[i];
      json << (i > 0 ? ",\n" : "\n") << "{\"name\": \"" << tensor.name
           << "\", \"begin\": " << layout_.tensor(i).begin
           << ", \"decayed\": " << (tensor.segment == Segment::kDecayed ? "true" : "false")
           << ", \"rate_factor\": " << tensor.factors.rate
           << ", \"decay_factor\": " << tensor.factors.decay << ", \"shape\": [";
      for (size_t d = 0; d < tensor.shape.size(); ++d)
        json << (d > 0 ? "," : "") << tensor.shape[d];
      json << "]}";
    }
    json << "]}\n";
  }

  const Experiment& experiment_;
  const std::filesystem::path folder_;
  const OpenedJob job_;
  const ParameterLayout& layout_;
  BatchStream stream_;
  DeviceArray<float> weights_, gradients_;
  DeviceArray<float> slots_;
  WeightStep optimiser_step_;
  std::ofstream weights_file_, gradients_file_, inputs_, labels_, numbers_;
};

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: first_steps EXPERIMENT DIR STEPS [SECTION.KEY=VALUE ...]\n";
    return 64;
  }
  Variables variables;
  if (const char* data = std::getenv("KUMO_DATA")) variables["KUMO_DATA"] = data;
  const std::vector<std::string> sets(argv + 4, argv + argc);
  const Experiment experiment = Take(ParseExperiment(argv[1], sets, variables));
  std::filesystem::create_directories(argv[2]);
  Run(experiment, argv[2]).Do(std::atoi(argv[3]));
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
