// Reading speed: training samples that one thread reads, decodes and transforms per second of CPU
// time, as in a worker's batch stream. bench/augment_speed.py compares it with torchvision.
//
//   reading_speed EXPERIMENT SECONDS [SECTION.KEY=VALUE ...]
//
// Prints {"samples_per_s": ..., "extents": "3x224x224"}.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "bench/take.h"
#include "common/settings/parser.h"
#include "data/batch_stream.h"
#include "data/open_datasets.h"

namespace kumo {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: reading_speed EXPERIMENT SECONDS [SECTION.KEY=VALUE ...]\n";
    return 64;
  }
  Variables variables;
  if (const char* data = std::getenv("KUMO_DATA")) variables["KUMO_DATA"] = data;
  const Experiment experiment =
      Take(ParseExperiment(argv[1], std::vector<std::string>(argv + 3, argv + argc), variables));
  const double seconds = std::atof(argv[2]);
  const Datasets sets = Take(OpenDatasets(experiment.data));
  BatchStream stream(&sets.trained(), {.seed = experiment.job.seed,
                                       .minibatch = experiment.sync.minibatch,
                                       .prefetch = 0,
                                       .transforms = sets.transforms});
  int64_t samples = 0;
  int64_t epoch = 0;
  const double start = CpuSeconds();
  while (samples == 0 || CpuSeconds() - start < seconds) {
    stream.Start(epoch++, {0, sets.train->size()});
    for (int64_t read = 1; read > 0; samples += read) {
      read = Take(stream.Next()).size;
      if (samples > 0 && CpuSeconds() - start >= seconds) break;
    }
    stream.Cancel();
  }
  const double rate = static_cast<double>(samples) / (CpuSeconds() - start);
  const int image = FindField(stream.fields(), kImageField);
  const std::string extents = image < 0 ? "" : ExtentsText(stream.fields()[image].extents);
  std::printf("{\"samples_per_s\": %.5g, \"extents\": \"%s\"}\n", rate, extents.c_str());
  return 0;
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) { return kumo::Main(argc, argv); }
