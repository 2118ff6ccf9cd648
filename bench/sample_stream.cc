// Sample stream: the images and objects that a job trains on, round by round, with its augmentation
// and its rates, on standard output, so that another program can train on the same ones
// (bench/torch_ssd.py). At the end of each epoch to be evaluated comes the validation set.
//
//   sample_stream EXPERIMENT [SECTION.KEY=VALUE ...]
//
// The first line has the formula of the pixels: (byte - mean) * scale, by channel. For each round,
// or minibatch of validation, a line of JSON ("epoch" from 1 on, "validation", "rate", "samples",
// "objects"), then the pixels, a byte each: samples x channels x height x width.
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "bench/objects.h"
#include "bench/take.h"
#include "common/settings/parser.h"
#include "data/batch_stream.h"
#include "worker/training/opened_job.h"

namespace kumo {
namespace {

void Write(const OpenedJob& job, BatchStream* stream, int epoch, bool validation,
           int64_t position) {
  const Fields fields = job.datasets.fields();
  while (true) {
    const Minibatch batch = Take(stream->Next());
    if (batch.size == 0) return;
    const double rate = job.schedule->RateAt(position, static_cast<int>(batch.size));
    position += batch.size;
    std::cout << "{\"epoch\": " << epoch << ", \"validation\": " << (validation ? "true" : "false")
              << ", \"rate\": " << rate << ", \"samples\": " << batch.size << ", \"objects\": ";
    WriteObjects(fields, batch, std::cout);
    std::cout << "}\n";
    const auto image = batch.fields[FindField(fields, kImageField)];
    std::cout.write(reinterpret_cast<const char*>(image.data()), std::ssize(image));
    if (!std::cout.flush()) std::exit(1);  // the reader has gone
  }
}

void WritePixelFormula(const Experiment& experiment, const OpenedJob& job) {
  if (experiment.data.subtract_mean) Fail("data.subtract_mean: a mean image is not told");
  const Fields fields = job.datasets.fields();
  const int place = FindField(fields, kImageField);
  const std::vector<int64_t>& extents = fields[place].extents;
  const PixelFormula& formula = job.datasets.pixels[place];
  const auto write = [&](const char* name, const auto& number_of) {
    std::cout << "\"" << name << "\": [";
    for (int64_t c = 0; c < extents[0]; ++c) std::cout << (c > 0 ? ", " : "") << number_of(c);
    std::cout << "]";
  };
  std::cout << "{";
  write("mean", [&](int64_t c) {
    return formula.mean.empty() ? 0 : formula.mean[c * extents[1] * extents[2]];
  });
  std::cout << ", ";
  write("scale", [&](int64_t c) { return formula.scale_of(c); });
  std::cout << "}\n";
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: sample_stream EXPERIMENT [SECTION.KEY=VALUE ...]\n";
    return 64;
  }
  Variables variables;
  if (const char* data = std::getenv("KUMO_DATA")) variables["KUMO_DATA"] = data;
  const std::vector<std::string> sets(argv + 2, argv + argc);
  const Experiment experiment = Take(ParseExperiment(argv[1], sets, variables));
  const OpenedJob job = Take(OpenJob(experiment));
  if (!HasObjects(job.datasets.fields())) Fail("the samples have no objects");
  std::cout << std::setprecision(9);
  WritePixelFormula(experiment, job);
  BatchStream train(&job.datasets.trained(),
                    {.seed = experiment.job.seed,
                     .minibatch = experiment.sync.partitions * experiment.sync.minibatch,
                     .transforms = job.datasets.transforms});
  BatchStream validation(job.datasets.validation.get(),
                         {.order = BatchOrder::kSequential,
                          .minibatch = experiment.evaluation.minibatch,
                          .transforms = job.datasets.validation_transforms});
  const int64_t samples = job.datasets.train->size();
  for (int epoch = 1; epoch <= experiment.job.epochs; ++epoch) {
    train.Start(epoch - 1, {0, samples});
    Write(job, &train, epoch, false, (epoch - 1) * samples);
    const int every = experiment.evaluation.every_epochs;
    if (epoch != experiment.job.epochs && (every == 0 || epoch % every != 0)) continue;
    validation.Start(0, {0, job.datasets.validation->size()});
    Write(job, &validation, epoch, true, 0);
  }
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
